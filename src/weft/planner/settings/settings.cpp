#include "weft/planner/settings/settings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/ops/communication.h"
#include "weft/planner/exchange/asked_algorithms.h"
#include "weft/planner/search/bucket/cut_exchanges.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/search/tile/tile_exchanges.h"
#include "weft/planner/settings/setting_rows.h"
#include "weft/planner/settings/setting_values.h"

namespace weft::planner {
namespace {

using language::syntax::Value;
using language::syntax::ValueKind;

Status set_seconds(Settings& settings, double given, const Value& value) {
  if (given < 0)
    return user_error("expected a time that is not negative", "0 is as long as it needs", value.span);
  settings.seconds = given;
  return {};
}

using enum Range;
using train::TrainingOptions;
constexpr std::string_view kSumPrecisions[] = {"f32", "bf16", "f16"};

constexpr SettingSpec kSpecs[] = {
    {"accumulate", "steps whose gradients are averaged for one update of the parameters", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 1e6, "a whole number from 1 to 1,000,000"));
       settings.training.accumulate = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.training.accumulate); }},
    {"algorithm", "what runs the collectives of LOCAL's ranks, by name; '' is what the prices choose",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kExample = "for example: algorithm = 'all_reduce_ring; all_gather_bruck'";
       if (value.kind != ValueKind::text)
         return user_error("expected names of algorithms as text", std::string(kExample), value.span);
       if (auto read = exchange::read_asked_algorithms(value.text); !read.ok()) {
         Error error = std::move(read).error();
         error.span = value.span;
         if (error.hint.empty()) error.hint = kExample;
         return error;
       }
       settings.running.algorithm = value.text;
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", settings.running.algorithm); }},
    {"batch_norm",
     "whose statistics a batch norm takes in TRAIN: global is of the whole batch, local of each device's "
     "share",
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
     "what gradients are summed in, in bytes: '25 MiB'; automatic is what is quickest; off: each by itself",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (set_by_word(settings.bucket_bytes, value)) return {};
       WEFT_TRY(bytes, quantity(value, Dimension::bytes));
       if (!(bytes > 0))
         return user_error("expected a size in bytes above 0", "automatic is what is quickest", value.span);
       settings.bucket_bytes = bytes;
       return {};
     },
     [](const Settings& settings) { return print_by_word(settings.bucket_bytes, print_quoted_bytes); }},
    running_count<&RunOptions::check_every>(
        "check_every",
        "steps after which ranks compare a sample of the weights that they hold alike; 0 is never"),
    running_file<&RunOptions::checkpoint>(
        "checkpoint", "a file that TRAIN saves to when it is over, and on the way; '' is none",
        Decides::host),
    running_file<&RunOptions::checkpoint_best>(
        "checkpoint_best",
        "a file for the best of what is tested every checkpoint_every steps: the least loss on the holdout, "
        "or in training; '' is none",
        Decides::host),
    running_count<&RunOptions::checkpoint_every>(
        "checkpoint_every", "steps from one checkpoint to the next; 0 is one at the end"),
    training_number<&TrainingOptions::clip_norm, not_negative>(
        "clip_norm", "what the norm of all gradients together may be; larger ones are scaled down; 0 is any"),
    {"codecs",
     "what may be made small on the wires, and by what: 'gradients: int8, weights: int8'; '' is nothing",
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
    running_count<&RunOptions::copy_every>("copy_every",
                                           "steps after which each of LOCAL's ranks copies what it holds, in "
                                           "memory: where one dies, restarts go on "
                                           "from there; 0 is never"),
    {"credit",
     "bytes of all-reduces that may be under way along an axis: '4 MiB'; longer ones go in parts of it; "
     "automatic "
     "is what is quickest; off: each is one call",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (set_by_word(settings.credit, value)) return {};
       WEFT_TRY(bytes, quantity(value, Dimension::bytes));
       if (!(bytes >= search::kLeastCredit))
         return user_error(
             fmt::format(
                 "expected a credit of {} or more, which is the least piece that ranks pass on, found {}",
                 print_bytes(search::kLeastCredit), print_bytes(bytes)),
             "for example: credit = '4 MiB'; automatic is what is quickest, off is none", value.span);
       settings.credit = bytes;
       return {};
     },
     [](const Settings& settings) { return print_by_word(settings.credit, print_quoted_bytes); }},
    {"decompose",
     "tiles that a collective and the products around it are cut into, so that one travels while the next is "
     "multiplied; automatic is what is quickest; off: none",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (set_by_word(settings.tiles, value)) return {};
       constexpr std::string_view kExample =
           "for example: decompose = 4; automatic is what is quickest, off is none";
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
    {"delay",
     "steps after which a gradient is applied: 1 is in the next one, which hides its sum over ranks; 0 is at "
     "once",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::number || (value.number.value != 0 && value.number.value != 1))
         return user_error("expected 0 or 1 steps", "for example: delay = 1", value.span);
       settings.delay = static_cast<std::int64_t>(value.number.value);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.delay); }},
    {"device", "what EXPLAIN plans for without ON: a device or a cluster; '' is a core of this machine",
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
        "in which a GPU gets nothing done until it counts as lost: '10m'; 0 is for ever"),
    {"distribution", "how plans are spread over a cluster, instead of a search; '' is to search",
     Decides::plan,
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
    training_number<&TrainingOptions::epsilon, not_negative>("epsilon", "what Adam adds to the deviation"),
    running_truth<"follow_plan", &RunOptions::follow_plan>(
        "whether TRAIN goes on with the plan that the weights were trained with, so that the bits are the "
        "same"),
    running_truth<"gives_way", &RunOptions::gives_way>(
        "whether a step on a GPU leaves room there for what is urgent"),
    {"gradients", "what gradients are summed in where precision is bf16 or f16: f32, or that type itself",
     Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(text, word_of(value, kSumPrecisions));
       settings.training.gradients = *plan::find_dtype(text);
       return {};
     },
     [](const Settings& settings) { return std::string(plan::name(settings.training.gradients)); }},
    running_count<&RunOptions::holdout>(
        "holdout", "rows, or bytes of a text, at the end of the data that TRAIN does not see but tests on"),
    {"holdout_by", "which rows are held out: the last, or those that the seed draws from anywhere",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kWays[] = {"last", "seed"};
       WEFT_TRY(text, word_of(value, kWays));
       settings.running.holdout_drawn = text == "seed";
       return {};
     },
     [](const Settings& settings) { return std::string(settings.running.holdout_drawn ? "seed" : "last"); }},
    training_number<&TrainingOptions::learning_rate, not_negative>("learning_rate",
                                                                   "the size of an optimizer's steps"),
    {"log", "a file that TRAIN writes the loss of every step to: .csv, or a name with tfevents; '' is none",
     Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind != ValueKind::text)
         return user_error("expected the name of a file", "for example: log = 'loss.csv'", value.span);
       settings.running.log = value.text;
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", settings.running.log); }},
    {"loss_scale", "what f16 multiplies the loss by at first; an overflow halves it and skips the step",
     Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, number_within(value, train::kLeastLossScale, 0x1p64, "a number from 1 to 2^64"));
       settings.training.loss_scale = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.training.loss_scale); }},
    {"loss_scale_steps", "steps without an overflow after which it doubles", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 1e9, "a whole number from 1 to 1,000,000,000"));
       settings.training.loss_scale_steps = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.training.loss_scale_steps); }},
    {"memory_limit", "bytes a device may use; 0 is all it has", Decides::plan | Decides::host,
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
    {"micro_batches", "parts of a step's batch, one after the other; their gradients add up to one update",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 65536, "a whole number from 1 to 65,536"));
       settings.micro_batches = static_cast<std::int64_t>(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.micro_batches); }},
    training_number<&TrainingOptions::momentum, share>("momentum",
                                                       "how much of the last step momentum keeps"),
    {"network",
     "what a rank of JOB sends to other hosts while all do, and the latency: '1.2 GB/s, 30 us'; '' is to "
     "measure it",
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
    {"optimizer_off",
     "stages of the optimizer that are left out: 'rewrite, rewrite communication'; '' is none", Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, stages_to_leave_out(value));
       settings.optimizer_off = std::move(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("'{}'", fmt::join(settings.optimizer_off, ", ")); }},
    running_share<&RunOptions::outer_momentum>(
        "outer_momentum",
        "how much of the last average's change the next one keeps, where sync_every is above 1"),
    {"outer_rate",
     "how far parameters go towards the average, where sync_every is above 1; DiLoCo has 0.7, and a momentum "
     "of "
     "0.9",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, number_within(value, 0, 10, "a number from 0 to 10"));
       settings.running.outer_rate = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.running.outer_rate); }},
    {"overlap",
     "whether ranks of LOCAL move bytes while they compute; automatic is where a processor is free",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.running.overlap, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.running.overlap); }},
    {"plan_limit", "nodes a plan may have; a runaway REPEAT ends here", Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(nodes, whole_within(value, 1, 1e9, "a whole number from 1 to 1,000,000,000"));
       settings.plan_limit = static_cast<std::int64_t>(nodes);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.plan_limit); }},
    {"post_validation",
     "whether parameters change before clip_norm's norm is known, and that is taken back where it is too "
     "large",
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
     "policy of types: f32, f64, bf16 or f16 with f32 master weights and losses, f8 as bf16 with products of "
     "weights in f8, pure_bf16 or pure_f16 without",
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
     "what TRAIN computes again rather than keep for the backward pass: layers, selective, none or names; "
     "automatic is what memory_limit asks for",
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
    {"remember",
     "whether later plans rest on what EXPLAIN ANALYZE measures; automatic is where nothing else ran "
     "meanwhile",
     Decides::host,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.running.remember, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.running.remember); }},
    running_count<&RunOptions::replan_every>(
        "replan_every",
        "steps after which a slow rank or link lets ranks change to a plan that suits it; 0 is never"),
    running_truth<"restart", &RunOptions::restart>(
        "whether TRAIN starts from new initial values even if the model has learned before"),
    running_count<&RunOptions::restarts>(
        "restarts",
        "times that TRAIN ON LOCAL starts its ranks again from the last checkpoint when one died"),
    {"resume",
     "whether TRAIN goes on from its checkpoint where there is one; automatic is when weft launch started "
     "ranks again",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.running.resume, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.running.resume); }},
    {"rules",
     "whether proven rules rewrite plans: true wherever that is cheaper, automatic where a step gets 2 % "
     "faster",
     Decides::model | Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.rules, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.rules); }},
    {"search_limit", "distributions that the search for a plan may look at", Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, 1e9, "a whole number from 1 to 1,000,000,000"));
       settings.search_limit = static_cast<std::int64_t>(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.search_limit); }},
    {"schedule", "how the learning rate changes: constant, linear, cosine or step", Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(text, word_of(value, run::schedule_names()));
       settings.running.schedule = *run::find_schedule(text);
       return {};
     },
     [](const Settings& settings) { return std::string(run::name(settings.running.schedule)); }},
    running_share<&RunOptions::schedule_end>("schedule_end",
                                             "the share of it that linear and cosine leave at the end"),
    running_count<&RunOptions::schedule_every>(
        "schedule_every", "steps after which step lowers it; 0 is a third of the schedule's"),
    running_share<&RunOptions::schedule_factor>("schedule_factor", "what step multiplies it by"),
    running_count<&RunOptions::schedule_steps>("schedule_steps",
                                               "steps of the schedule, from the model's first on; 0 is those "
                                               "of the TRAIN at hand, from its first on"),
    {"seconds", "that planning may take, rules and proof included; 0 is as long as it needs",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind == ValueKind::quantity || value.kind == ValueKind::text) {
         WEFT_TRY(given, quantity(value, Dimension::seconds));
         return set_seconds(settings, given, value);
       }
       WEFT_TRY(given, number_within(value, 0, 1e9, "a number of seconds that is not negative"));
       return set_seconds(settings, given, value);
     },
     [](const Settings& settings) { return fmt::format("{}", settings.seconds); }},
    running_count<&RunOptions::seed>("seed", "of initial values, of the order of the data and of dropout"),
    {"servers",
     "spare hosts that add up all-reduces where that is quicker, each with a network card; ON LOCAL, "
     "processes "
     "that "
     "do; off is none",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       if (value.kind == ValueKind::word && value.text == "off") return settings.servers = 0, Status();
       constexpr double kMost = 64;
       if (value.kind != ValueKind::number || value.number.value != std::floor(value.number.value) ||
           !(value.number.value >= 1 && value.number.value <= kMost))
         return user_error(fmt::format("expected off or from 1 to {} servers", kMost),
                           "for example: servers = 2", value.span);
       settings.servers = static_cast<std::int64_t>(value.number.value);
       return {};
     },
     [](const Settings& settings) {
       return settings.servers == 0 ? std::string("off") : fmt::format("{}", settings.servers);
     }},
    {"slice_sends",
     "whether ranks of a stage that have the same to send to the next one send a slice of it each, to be put "
     "together there; automatic is where that is quicker",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.slice_sends, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.slice_sends); }},
    {"sync_every",
     "steps that ranks which slice the batch learn by themselves, until they average what they learned; 1 is "
     "to "
     "sum gradients in every step",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, whole_within(value, 1, static_cast<double>(ops::kMostStepsBetweenSums),
                                    "a whole number from 1 to 1,000,000,000"));
       settings.sync_every = static_cast<std::int64_t>(given);
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.sync_every); }},
    running_truth<"synthesize", &RunOptions::synthesize>(
        "whether algorithms made for the wires compete with those that ship"),
    {"temperature", "how freely GENERATE draws what comes next; 0 is always what is likeliest",
     Decides::nothing,
     [](Settings& settings, const Value& value) -> Status {
       WEFT_TRY(given, number_within(value, 0, 1e6, "a number that is not negative"));
       settings.running.temperature = given;
       return {};
     },
     [](const Settings& settings) { return fmt::format("{}", settings.running.temperature); }},
    running_count<&RunOptions::test_every>(
        "test_every", "steps from one test on the holdout to the next while TRAIN runs; 0 is one at the end"),
    running_count<&RunOptions::threads>("threads", "that TRAIN and INFER run on; 0 is one for each processor",
                                        Decides::host),
    {"tiled_loss",
     "whether a loss over classes holds a tile of its logits alone; automatic is where they have 64 MiB or "
     "more, on processors",
     Decides::model | Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       return set_truth_or_automatic(settings.tiled_loss, value);
     },
     [](const Settings& settings) { return print_truth_or_automatic(settings.tiled_loss); }},
    {"transport", "between the ranks of LOCAL: automatic, shm, tcp, or inproc for threads of one process",
     Decides::plan,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kTransports[] = {"automatic", "shm", "tcp", "inproc"};
       WEFT_TRY(text, word_of(value, kTransports));
       settings.running.transport = text;
       return {};
     },
     [](const Settings& settings) { return settings.running.transport; }},
    running_truth<"unit_by_unit", &RunOptions::unit_by_unit>(
        "whether a GPU gets the next unit when one is done, to name the one that fails"),
    running_time<"wall_time", &RunOptions::wall_time>(
        "after which TRAIN saves its checkpoint and ends: '3h50m'; 0 is never"),
    running_count<&RunOptions::warmup>("warmup", "steps in which the learning rate climbs from nothing",
                                       Decides::model),
    training_number<&TrainingOptions::weight_decay, not_negative>("weight_decay",
                                                                  "how fast AdamW shrinks weights"),
    {"weight_decay_on", "what it shrinks: all parameters, or matrices, which have two indices and more",
     Decides::model,
     [](Settings& settings, const Value& value) -> Status {
       constexpr std::string_view kParts[] = {"all", "matrices"};
       WEFT_TRY(text, word_of(value, kParts));
       settings.training.decay_vectors = text == "all";
       return {};
     },
     [](const Settings& settings) {
       return std::string(settings.training.decay_vectors ? "all" : "matrices");
     }},
};

// What others call a setting, or do with one.
std::string other_word_for(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"lr", "the learning rate is written learning_rate = 0.001"},
      {"wd", "it is written weight_decay = 0.01"},
      {"batch_size", "the batch is a size of the model: its first index, WITH (b = 32)"},
      {"epochs", "TRAIN counts steps: STEPS 1000"},
      {"dtype", "it is written precision = bf16"},
      {"gpus", "say what to plan for with ON: ON pod, ON h100"},
      {"dp", "data parallel is an index sliced across the ranks: distribution = 'rank=4: slice b'"},
      {"tp", "tensor parallel is an index sliced across the ranks: distribution = 'gpu=8: slice h, f'"},
      {"pp",
       "layers one after the other are stages: distribution = 'stage=4: stage; micro=8; schedule 1f1b'"},
      {"zero", "ZeRO is shard: distribution = 'rank=4: slice b, shard optimizer'"},
  };
  for (const auto& [word, advice] : kWords)
    if (word == name) return std::string(advice);
  return {};
}

const SettingSpec* find_setting(std::string_view name) {
  if (name == "memory") name = "memory_limit";  // what people write first
  for (const SettingSpec& spec : kSpecs)
    if (spec.name == name) return &spec;
  return nullptr;
}

}  // namespace

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
    if (std::ranges::find(given, setting.name.text) != given.end())
      return user_error(fmt::format("{} is given twice", setting.name.text), "take one of them away",
                        setting.name.span);
    given.push_back(setting.name.text);
    // A size of the model hides a setting of the same name.
    if (std::ranges::find(sizes, setting.name.text) != sizes.end()) {
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
