#include "weft/planner/settings/settings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/ops/communication.h"
#include "weft/planner/exchange/requested_algorithms.h"
#include "weft/planner/search/bucket/partition_all_reduces.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/search/tile/tile_exchanges.h"
#include "weft/planner/settings/setting_rows.h"
#include "weft/planner/settings/setting_values.h"

namespace weft::planner {
namespace {

using language::syntax::Value;
using language::syntax::ValueKind;

Status set_seconds(Settings& settings, double given, const Value& value) {
  if (given < 0) return user_error("expected a time that is not negative", "0 is no limit", value.span);
  settings.seconds = given;
  return {};
}

using enum Range;
using train::TrainingOptions;
constexpr std::string_view kSumPrecisions[] = {"f32", "bf16", "f16"};

constexpr std::pair<std::string_view, cluster::ProductFormat> kProductFormats[] = {
    {"plan", cluster::ProductFormat::plan},
    {"f8", cluster::ProductFormat::f8},
    {"nvfp4", cluster::ProductFormat::nvfp4}};

constexpr SettingSpec kSpecs[] = {
    {"accumulate", "gradient accumulation: steps whose gradients are averaged before one update",
     Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 1e6, "a whole number from 1 to 1,000,000"));
       settings.training.accumulate = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.training.accumulate); }},
    {"algorithm", "collective algorithms of LOCAL ranks, by name; '' lets the planner choose", Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kExample = "for example: algorithm = 'all_reduce_ring; all_gather_bruck'";
       if (value.kind != ValueKind::text)
         return user_error("expected names of algorithms as text", std::string(kExample), value.span);
       if (auto read = exchange::read_requested_algorithms(value.text); !read.ok()) {
         Error error = std::move(read).error();
         error.span = value.span;
         if (error.hint.empty()) error.hint = kExample;
         return error;
       }
       settings.running.algorithm = value.text;
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", settings.running.algorithm); }},
    {"all_reduce_window",
     "bytes of all-reduces in flight per axis, '4 MiB'; longer ones are partitioned; off: one call each; "
     "automatic: the fastest",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (set_by_word(settings.credit, value)) return {};
       WEFT_TRY(bytes, quantity(value, Dimension::bytes));
       if (!(bytes >= search::kMinWindow))
         return user_error(
             fmt::format("expected a window of {} or more, the smallest part that ranks exchange, found {}",
                         print_bytes(search::kMinWindow), print_bytes(bytes)),
             "for example: all_reduce_window = '4 MiB'; automatic: the fastest; off: none", value.span);
       settings.credit = bytes;
       return {};
     },
     [](const Settings& settings) { return print_by_word(settings.credit, print_quoted_bytes); }},
    {"batch_norm", "batch norm statistics in TRAIN: global (the whole batch) or local (each device's share)",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kNorms[] = {"global", "local"};
       WEFT_TRY(text, word_of(value, kNorms));
       settings.local_norms = text == "local";
       return {};
     },
     [](const Settings& settings) { return std::string(settings.local_norms ? "local" : "global"); }},
    training_number<&TrainingOptions::beta1, share>("beta1", "decay of Adam's first moment"),
    training_number<&TrainingOptions::beta2, share>("beta2", "decay of Adam's second moment"),
    {"buckets",
     "bucket size of gradient all-reduces, '25 MiB'; off: one call per gradient; automatic: the fastest",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (set_by_word(settings.bucket_bytes, value)) return {};
       WEFT_TRY(bytes, quantity(value, Dimension::bytes));
       if (!(bytes > 0))
         return user_error("expected a size in bytes above 0", "automatic takes the fastest", value.span);
       settings.bucket_bytes = bytes;
       return {};
     },
     [](const Settings& settings) { return print_by_word(settings.bucket_bytes, print_quoted_bytes); }},
    running_file<&RunOptions::checkpoint>(
        "checkpoint", "file that TRAIN saves to at the end and every checkpoint_every steps; '' is none",
        Decides::host),
    running_file<&RunOptions::checkpoint_best>(
        "checkpoint_best",
        "file for the weights with the lowest loss, on the holdout or else in training, checked every "
        "checkpoint_every steps; '' is none",
        Decides::host),
    running_count<&RunOptions::checkpoint_every>("checkpoint_every",
                                                 "steps between checkpoints; 0: one at the end"),
    training_number<&TrainingOptions::clip_norm, not_negative>(
        "clip_norm", "maximum norm of all gradients together; larger ones are scaled down; 0 is no limit"),
    {"codecs", "lossy compression of communication: 'gradients: int8, weights: int8'; '' is none",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::text)
         return user_error("expected codecs as text",
                           "for example: codecs = 'gradients: int8, weights: int8'", value.span);
       auto read = search::read_codecs(value.text);
       if (!read.ok()) {
         Error error = std::move(read).error();
         error.span = value.span;
         return error;
       }
       settings.codecs = *read;
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", search::print(settings.codecs)); }},
    {"device", "device or cluster that EXPLAIN plans for without ON; '' is one core of this machine",
     Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::word && value.kind != ValueKind::text)
         return user_error("expected the name of a device or a cluster", "for example: device = h100",
                           value.span);
       settings.device = value.text;
       return {};
     },
     [](const Settings& settings) { return settings.device.empty() ? "''" : settings.device; }},
    running_time<"device_timeout", &RunOptions::device_timeout>(
        "time without progress after which a GPU counts as lost: '10m'; 0 is never"),
    {"disabled_stages", "planner stages to skip: 'rewrite, rewrite communication'; '' is none", Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, stages_to_leave_out(value));
       settings.optimizer_off = std::move(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", fmt::join(settings.optimizer_off, ", ")); }},
    {"distribution", "distribution to use instead of a search; '' searches", Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kExample =
           "for example: distribution = 'node=4: slice b; gpu=8: slice h, f'";
       if (value.kind != ValueKind::text)
         return user_error("expected a distribution as text", std::string(kExample), value.span);
       if (!value.text.empty())
         if (auto read = distribute::read_distribution(value.text); !read.ok()) {
           Error error = std::move(read).error();
           error.span = value.span;
           if (error.hint.empty()) error.hint = kExample;
           return error;
         }
       settings.distribution = value.text;
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", settings.distribution); }},
    training_number<&TrainingOptions::epsilon, not_negative>("epsilon",
                                                             "constant added to Adam's denominator"),
    running_truth<"from_scratch", &RunOptions::restart>(
        "whether TRAIN starts from new initial values even if the model has weights"),
    {"gradient_delay",
     "steps between computing and applying a gradient: 1 overlaps its all-reduce with the next step; 0: "
     "applied at once",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::number || (value.number.value != 0 && value.number.value != 1))
         return user_error("expected 0 or 1 steps", "for example: gradient_delay = 1", value.span);
       settings.delay = static_cast<std::int64_t>(value.number.value);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.delay); }},
    {"gradient_precision",
     "type in which gradients are reduced if precision is bf16 or f16: f32, or that type", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(text, word_of(value, kSumPrecisions));
       settings.training.gradients = *plan::find_dtype(text);
       return {};
     },
     [](const Settings& settings) { return std::string(plan::name(settings.training.gradients)); }},
    running_count<&RunOptions::holdout>(
        "holdout",
        "rows (of a text: bytes) at the end of the data that TRAIN tests on and does not train on"),
    {"holdout_by", "which rows are held out: last, or seed for a random sample", Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kWays[] = {"last", "seed"};
       WEFT_TRY(text, word_of(value, kWays));
       settings.running.holdout_drawn = text == "seed";
       return {};
     },
     [](const Settings& settings) { return std::string(settings.running.holdout_drawn ? "seed" : "last"); }},
    running_count<&RunOptions::copy_every>("in_memory_checkpoint_every",
                                           "steps between in-memory copies of weights and optimizer states "
                                           "on LOCAL ranks, from which restarts continue; 0 is never"),
    {"keep_measurements",
     "whether later plans use the times that EXPLAIN ANALYZE measures; automatic: unless other work "
     "disturbed them",
     Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.running.remember, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.running.remember); }},
    running_truth<"keep_plan", &RunOptions::follow_plan>(
        "whether TRAIN continues with the plan that the weights were trained with, so that results are "
        "bitwise the same"),
    training_number<&TrainingOptions::learning_rate, not_negative>("learning_rate",
                                                                   "step size of the optimizer"),
    {"log", "file for the loss of every step: .csv, or a name with tfevents for TensorBoard; '' is none",
     Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::text)
         return user_error("expected a file name", "for example: log = 'loss.csv'", value.span);
       settings.running.log = value.text;
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", settings.running.log); }},
    {"loss_scale", "initial loss scale of f16; an overflow halves it and skips the step", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, number_within(value, train::kLeastLossScale, 0x1p64, "a number from 1 to 2^64"));
       settings.training.loss_scale = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.training.loss_scale); }},
    {"loss_scale_window", "steps without an overflow after which the loss scale doubles", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 1e9, "a whole number from 1 to 1,000,000,000"));
       settings.training.loss_scale_steps = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.training.loss_scale_steps); }},
    running_count<&RunOptions::restarts>(
        "max_restarts", "how often TRAIN ON LOCAL restarts failed ranks from the last checkpoint"),
    {"memory_limit", "bytes per device; 0 is all it has, less memory_reserve", Decides::plan | Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind == ValueKind::number && value.number.value == 0)
         return settings.memory_limit = 0, Status();
       WEFT_TRY(bytes, quantity(value, Dimension::bytes));
       if (bytes < 0)
         return user_error("expected a size in bytes that is not negative", "0 is all that the device has",
                           value.span);
       settings.memory_limit = bytes;
       return {};
     },
     [](const Settings& settings) {
       return settings.memory_limit == 0 ? std::string("0") : print_bytes(settings.memory_limit);
     }},
    {"memory_reserve", "share of a device's memory that plans leave free; automatic: the stack's, else 0.06",
     Decides::plan | Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind == ValueKind::word && value.text == "automatic")
         return settings.memory_reserve.reset(), Status();
       constexpr double kMost = 0.9;
       WEFT_TRY(given, number_within(value, 0, kMost, "a share from 0 to 0.9, or automatic"));
       settings.memory_reserve = given;
       return {};
     },
     [](const Settings& settings) {
       return settings.memory_reserve ? fmt::format("{}", *settings.memory_reserve)
                                      : std::string("automatic");
     }},
    {"micro_batches", "micro-batches per step, run one after another; their gradients accumulate",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 65536, "a whole number from 1 to 65,536"));
       settings.micro_batches = static_cast<std::int64_t>(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.micro_batches); }},
    training_number<&TrainingOptions::momentum, share>("momentum", "coefficient of the optimizer momentum"),
    {"network",
     "bandwidth and latency per rank of JOB while all ranks send to other hosts: '1.2 GB/s, 30 us'; '' "
     "measures them",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, network_of(value));
       settings.running.network = given;
       return {};
     },
     [](const Settings& settings) {
       const auto& network = settings.running.network;
       return network ? fmt::format("'{}, {}'", print_rate(network->bytes_per_second),
                                    print_seconds(network->latency_seconds))
                      : std::string("''");
     }},
    {"optimizer", "sgd, momentum, adam or adamw", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(text, word_of(value, train::optimizer_names()));
       settings.training.optimizer = *train::find_optimizer(text);
       return {};
     },
     [](const Settings& settings) { return std::string(train::name(settings.training.optimizer)); }},
    {"outer_learning_rate",
     "learning rate of the outer optimizer if sync_every is above 1; DiLoCo uses 0.7, with a momentum of 0.9",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, number_within(value, 0, 10, "a number from 0 to 10"));
       settings.running.outer_rate = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.running.outer_rate); }},
    running_share<&RunOptions::outer_momentum>("outer_momentum",
                                               "momentum of the outer optimizer if sync_every is above 1"),
    {"overlap", "whether LOCAL ranks communicate while they compute; automatic: if a processor is free",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.running.overlap, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.running.overlap); }},
    {"parameter_servers",
     "spare hosts that sum all-reduces where that is faster, each with a network card; ON LOCAL: processes "
     "that do; off is none",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind == ValueKind::word && value.text == "off") return settings.servers = 0, Status();
       constexpr double kMost = 64;
       if (value.kind != ValueKind::number || value.number.value != std::floor(value.number.value) ||
           !(value.number.value >= 1 && value.number.value <= kMost))
         return user_error(fmt::format("expected off or 1 to {} servers", kMost),
                           "for example: parameter_servers = 2", value.span);
       settings.servers = static_cast<std::int64_t>(value.number.value);
       return {};
     },
     [](const Settings& settings) {
       return settings.servers == 0 ? std::string("off") : fmt::format("{}", settings.servers);
     }},
    {"plan_limit", "maximum nodes of a plan; stops a runaway REPEAT", Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(nodes, whole_within(value, 1, 1e9, "a whole number from 1 to 1,000,000,000"));
       settings.plan_limit = static_cast<std::int64_t>(nodes);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.plan_limit); }},
    {"planning_seconds", "time limit of planning, including rules and proof; 0 is no limit", Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind == ValueKind::quantity || value.kind == ValueKind::text) {
         WEFT_TRY(given, quantity(value, Dimension::seconds));
         return set_seconds(settings, given, value);
       }
       WEFT_TRY(given, number_within(value, 0, 1e9, "a number of seconds that is not negative"));
       return set_seconds(settings, given, value);
     },
     [](const Settings& settings) { return fmt::format("{}", settings.seconds); }},
    {"post_validation",
     "whether parameters are updated before the norm for clip_norm is known, and restored if it is too large",
     Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, truth(value, "post_validation"));
       settings.training.post_validation = given;
       return {};
     },
     [](const Settings& settings) {
       return std::string(settings.training.post_validation ? "true" : "false");
     }},
    {"precision",
     "precision policy: f32, f64, bf16 or f16 (with f32 master weights and losses), f8 (as bf16, but "
     "products with weights in f8), pure_bf16 or pure_f16",
     Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(text, word_of(value, train::precision_names()));
       settings.training.precision = *train::find_precision(text);
       settings.precision = settings.training.precision.compute;
       return {};
     },
     [](const Settings& settings) { return std::string(settings.training.precision.name); }},
    {"prove", "whether a plan for several ranks is proven before it is shown or run", Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, truth(value, "prove"));
       settings.prove = given;
       return {};
     },
     [](const Settings& settings) { return std::string(settings.prove ? "true" : "false"); }},
    {"recompute",
     "activation recomputation in TRAIN: layers, selective, none or names; automatic: as memory_limit needs",
     Decides::model | Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::text && value.kind != ValueKind::word)
         return user_error("expected what to recompute as text", "for example: recompute = 'layers'",
                           value.span);
       if (value.text == "automatic") return settings.recompute.reset(), Status();
       auto read = train::read_recompute(value.text);
       if (!read.ok()) {
         Error error = std::move(read).error();
         error.span = value.span;
         return error;
       }
       settings.recompute = std::move(*read);
       return {};
     },
     [](const Settings& settings) {
       return settings.recompute ? fmt::format("'{}'", train::print(*settings.recompute))
                                 : std::string("automatic");
     }},
    running_count<&RunOptions::replan_every>(
        "replan_every",
        "steps between checks for slow ranks and links, after which the plan may change; 0 is never"),
    running_count<&RunOptions::check_every>(
        "replica_check_every",
        "steps between comparisons of replicated weights across ranks, by a sample; 0 is never"),
    {"resume", "whether TRAIN continues from its checkpoint; automatic: if weft launch restarted the ranks",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.running.resume, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.running.resume); }},
    {"rules",
     "whether proven rules rewrite plans: true: wherever they are cheaper; automatic: if a step gets 2 % "
     "faster",
     Decides::model | Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.rules, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.rules); }},
    {"scatter_gather_sends",
     "whether ranks of a stage that hold the same activations send a slice each, which the next stage "
     "gathers; automatic: if faster",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.slice_sends, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.slice_sends); }},
    {"schedule", "learning rate schedule: constant, linear, cosine or step", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(text, word_of(value, run::schedule_names()));
       settings.running.schedule = *run::find_schedule(text);
       return {};
     },
     [](const Settings& settings) { return std::string(run::name(settings.running.schedule)); }},
    running_share<&RunOptions::schedule_end>(
        "schedule_end", "share of the learning rate left at the end of linear and cosine"),
    running_count<&RunOptions::schedule_every>(
        "schedule_every", "steps between decays of the schedule step; 0 is a third of the schedule"),
    running_share<&RunOptions::schedule_factor>("schedule_factor",
                                                "factor of each decay of the schedule step"),
    running_count<&RunOptions::schedule_steps>("schedule_steps",
                                               "length of the schedule, from the model's first step; 0: the "
                                               "steps of this TRAIN, from its first step"),
    {"search_limit", "maximum number of distributions that the search estimates", Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 1e9, "a whole number from 1 to 1,000,000,000"));
       settings.search_limit = static_cast<std::int64_t>(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.search_limit); }},
    running_count<&RunOptions::seed>("seed", "seed of initial values, data order and dropout"),
    running_truth<"serialize_kernels", &RunOptions::unit_by_unit>(
        "whether a GPU runs one unit at a time, so that an error names the one that failed"),
    {"simpler_within",
     "share of a step within which the simplest plan is chosen; automatic: half of the interval of the "
     "prediction, at most 0.03",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind == ValueKind::word && value.text == "automatic") {
         settings.simpler_within.reset();
         return {};
       }
       WEFT_TRY(given, number_within(value, 0, 1, "a number from 0 to 1, or automatic"));
       settings.simpler_within = given;
       return {};
     },
     [](const Settings& settings) {
       return settings.simpler_within ? fmt::format("{}", *settings.simpler_within) : "automatic";
     }},
    {"stack", "software that trains on the cluster: megatron, deepspeed, ...; '' is weft", Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::word && value.kind != ValueKind::text)
         return user_error("expected the name of a stack", "for example: stack = 'megatron'", value.span);
       settings.stack = value.text;
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", settings.stack); }},
    {"stack_products", "number format of the stack's products with weights: f8, nvfp4, or plan (unchanged)",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       for (const auto& [name, format] : kProductFormats)
         if (value.kind == ValueKind::word && value.text == name) {
           settings.stack_products = format;
           return {};
         }
       return user_error("expected plan, f8 or nvfp4", "for example: stack_products = f8", value.span);
     },
     [](const Settings& settings) {
       const auto known = std::ranges::find(kProductFormats, settings.stack_products,
                                            &std::pair<std::string_view, cluster::ProductFormat>::second);
       return std::string(known->first);
     }},
    running_text<&RunOptions::stop>("stop", "GENERATE ends before this text; '' is none"),
    {"sync_every",
     "local SGD: steps between averages of the parameters of data-parallel ranks; 1: gradients are reduced "
     "in every step",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, static_cast<double>(ops::kMaxStepsBetweenSums),
                                    "a whole number from 1 to 1,000,000,000"));
       settings.sync_every = static_cast<std::int64_t>(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.sync_every); }},
    running_truth<"synthesize_collectives", &RunOptions::synthesize>(
        "whether generated collective algorithms compete with the shipped ones"),
    {"temperature", "sampling temperature of GENERATE; 0 always takes the most likely token",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, number_within(value, 0, 1e6, "a number that is not negative"));
       settings.running.temperature = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.running.temperature); }},
    running_count<&RunOptions::test_every>(
        "test_every", "steps between tests on the holdout during TRAIN; 0: one at the end"),
    running_count<&RunOptions::threads>("threads", "threads of TRAIN and INFER; 0: one per processor",
                                        Decides::host),
    {"tile_collectives",
     "tiles that a collective and the matrix products beside it are split into, so that they overlap; off: "
     "none; automatic: the fastest",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (set_by_word(settings.tiles, value)) return {};
       constexpr std::string_view kExample =
           "for example: tile_collectives = 4; automatic: the fastest; off: none";
       constexpr auto kMost = static_cast<double>(search::kMostTiles);
       if (value.kind != ValueKind::number || value.number.value != std::floor(value.number.value) ||
           !(value.number.value >= 2 && value.number.value <= kMost))
         return user_error(fmt::format("expected automatic, off or from 2 to {} tiles", search::kMostTiles),
                           std::string(kExample), value.span);
       settings.tiles = static_cast<std::int64_t>(value.number.value);
       return {};
     },
     [](const Settings& settings) {
       return print_by_word(settings.tiles, [](std::int64_t tiles) { return fmt::format("{}", tiles); });
     }},
    {"tiled_loss",
     "whether a loss over classes computes its logits tile by tile; automatic: from 64 MiB of logits, on "
     "processors",
     Decides::model | Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.tiled_loss, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.tiled_loss); }},
    running_text<&RunOptions::tokenizer>(
        "tokenizer", "tokenizer.json that GENERATE reads and writes text with; '' is one token per byte",
        Decides::host),
    running_count<&RunOptions::top_k>("top_k",
                                      "most likely tokens that GENERATE draws from; 0 is all of them"),
    running_share<&RunOptions::top_p>(
        "top_p", "GENERATE draws from the most likely tokens that have this probability together"),
    {"transport", "between LOCAL ranks: automatic, shm, tcp, or inproc (threads of one process)",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kTransports[] = {"automatic", "shm", "tcp", "inproc"};
       WEFT_TRY(text, word_of(value, kTransports));
       settings.running.transport = text;
       return {};
     },
     [](const Settings& settings) { return settings.running.transport; }},
    running_time<"wall_time", &RunOptions::wall_time>(
        "run time after which TRAIN saves its checkpoint and ends: '3h50m'; 0 is no limit"),
    running_count<&RunOptions::warmup>("warmup", "steps in which the learning rate rises from 0",
                                       Decides::model),
    training_number<&TrainingOptions::weight_decay, not_negative>("weight_decay", "weight decay of AdamW"),
    {"weight_decay_on", "parameters that decay: all, or matrices (two or more indices)", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kParts[] = {"all", "matrices"};
       WEFT_TRY(text, word_of(value, kParts));
       settings.training.decay_vectors = text == "all";
       return {};
     },
     [](const Settings& settings) {
       return std::string(settings.training.decay_vectors ? "all" : "matrices");
     }},
    running_truth<"yield", &RunOptions::gives_way>(
        "whether a step on a GPU leaves some multiprocessors free for high-priority work"),
};

// Advice for names that other tools use.
std::string other_word_for(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"lr", "the learning rate is written learning_rate = 0.001"},
      {"wd", "it is written weight_decay = 0.01"},
      {"batch_size", "the batch is a size of the model: its first index, WITH (b = 32)"},
      {"epochs", "TRAIN counts steps: STEPS 1000"},
      {"dtype", "it is written precision = bf16"},
      {"gpus", "name the target with ON: ON pod, ON h100"},
      {"dp", "HINT DP 4, or in full: distribution = 'rank=4: slice b'"},
      {"tp", "HINT TP 8, or in full: distribution = 'gpu=8: slice h, f'"},
      {"pp", "HINT PP 4, or in full: distribution = 'stage=4: stage; micro=8; schedule 1f1b'"},
      {"zero", "HINT ZERO 1, or in full: distribution = 'rank=4: slice b, shard optimizer'"},
  };
  for (const auto& [word, advice] : kWords)
    if (word == name) return std::string(advice);
  return {};
}

// Former names of settings, which scripts and weights may still contain.
struct SettingAlias {
  std::string_view before, now;
};
constexpr SettingAlias kAliases[] = {
    {"check_every", "replica_check_every"},
    {"copy_every", "in_memory_checkpoint_every"},
    {"credit", "all_reduce_window"},
    {"decompose", "tile_collectives"},
    {"delay", "gradient_delay"},
    {"follow_plan", "keep_plan"},
    {"gives_way", "yield"},
    {"gradients", "gradient_precision"},
    {"loss_scale_steps", "loss_scale_window"},
    {"optimizer_off", "disabled_stages"},
    {"outer_rate", "outer_learning_rate"},
    {"remember", "keep_measurements"},
    {"restart", "from_scratch"},
    {"restarts", "max_restarts"},
    {"seconds", "planning_seconds"},
    {"servers", "parameter_servers"},
    {"slice_sends", "scatter_gather_sends"},
    {"synthesize", "synthesize_collectives"},
    {"unit_by_unit", "serialize_kernels"},
};

const SettingSpec* find_setting(std::string_view name) {
  name = current_name(name);
  if (name == "memory") name = "memory_limit";  // a common shorthand
  for (const SettingSpec& spec : kSpecs)
    if (spec.name == name) return &spec;
  return nullptr;
}

}  // namespace

std::string_view current_name(std::string_view name) {
  const auto* const found = std::ranges::find(kAliases, name, &SettingAlias::before);
  return found == std::end(kAliases) ? name : found->now;
}

std::vector<RenamedWord> renamed_words(std::string_view name, const Value& value) {
  std::vector<RenamedWord> found;
  const auto add = [&](std::string_view before, std::string_view now) {
    if (before != now) found.push_back({std::string(before), std::string(now)});
  };
  const std::string_view current = current_name(name);
  add(name, current);
  if (value.kind != ValueKind::text) return found;
  if (current == "disabled_stages")
    for (std::string_view rest = value.text; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view stage = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      while (stage.starts_with(' ')) stage.remove_prefix(1);
      while (stage.ends_with(' ')) stage.remove_suffix(1);
      add(stage, search::current_stage_name(stage));
    }
  if (current == "distribution" && distribute::has_former_words(value.text)) add("takes", "micro-batches");
  return found;
}

std::span<const SettingSpec> setting_specs() { return kSpecs; }

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  for (const SettingSpec& spec : kSpecs) names.push_back(spec.name);
  return names;
}

std::vector<std::string> print_changed(const Settings& settings,
                                       const std::function<bool(const SettingSpec&)>& takes) {
  std::vector<std::string> changed;
  for (const SettingSpec& spec : kSpecs)
    if (takes(spec) && spec.show(settings) != spec.show(Settings{}))
      changed.push_back(fmt::format("{} = {}", spec.name, spec.show(settings)));
  return changed;
}

Status apply(Settings& settings, const language::syntax::Name& name, const Value& value) {
  const SettingSpec* spec = find_setting(name.text);
  if (spec == nullptr) {
    std::string hint = other_word_for(name.text);
    if (hint.empty()) hint = did_you_mean(name.text, setting_names());
    return user_error(fmt::format("unknown setting: {}", name.text),
                      hint.empty() ? "SHOW SETTINGS lists them" : std::move(hint), name.span);
  }
  Status status = spec->set(settings, value);
  if (status.ok() || !status.error().hint.empty()) return status;
  Error error = std::move(status).error();
  error.hint = fmt::format("for example: {} = {}", spec->name, spec->show(Settings{}));
  return error;
}

Result<std::vector<language::SizeOverride>> apply_list(Settings& settings,
                                                       std::span<const language::syntax::Setting> list,
                                                       std::span<const std::string_view> sizes,
                                                       std::string_view model) {
  std::vector<language::SizeOverride> overrides;
  std::vector<std::string_view> given;
  for (const language::syntax::Setting& setting : list) {
    // A size of the model shadows a setting with the same name.
    const bool is_size = std::ranges::find(sizes, setting.name.text) != sizes.end();
    const std::string_view name = is_size ? setting.name.text : current_name(setting.name.text);
    if (std::ranges::find(given, name) != given.end())
      return user_error(fmt::format("{} is given twice", name), "remove one of them", setting.name.span);
    given.push_back(name);
    if (is_size) {
      if (setting.value.kind != ValueKind::number || !setting.value.number.is_whole)
        return user_error(fmt::format("size {} must be a whole number", setting.name.text),
                          fmt::format("for example: {} = 8", setting.name.text), setting.value.span);
      overrides.push_back({std::string(setting.name.text), setting.value.number.whole, setting.value.span});
      continue;
    }
    if (find_setting(setting.name.text) == nullptr) {
      std::vector<std::string_view> names = setting_names();
      names.insert(names.begin(), sizes.begin(), sizes.end());
      std::string hint = other_word_for(setting.name.text);
      if (hint.empty()) hint = did_you_mean(setting.name.text, names);
      if (hint.empty()) hint = fmt::format("sizes of {} are {}", model, fmt::join(sizes, ", "));
      return user_error(fmt::format("no size of {} and no setting: {}", model, setting.name.text),
                        std::move(hint), setting.name.span);
    }
    WEFT_TRY_STATUS(apply(settings, setting.name, setting.value));
  }
  return overrides;
}

}  // namespace weft::planner
