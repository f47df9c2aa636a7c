#include "weft/translate/imports/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "weft/formats/value.h"

namespace weft::imports {
namespace {

constexpr double kLeastScale = 1e-6, kMostScale = 1e9;  // limits of factors and divisors

Result<double> scale_or(Config& config, const char* key, double otherwise) {
  WEFT_TRY(scale, config.number_or(key, otherwise));
  if (scale >= kLeastScale && scale <= kMostScale) return scale;
  return user_error(fmt::format("{}{}: expected a number from {} to {}, found {}", config.path(), key,
                                kLeastScale, kMostScale, scale));
}

Result<double> scale_of(Config& config, const char* key) {
  if (!config.has(key)) return user_error(fmt::format("expected {}{}, found none", config.path(), key));
  return scale_or(config, key, 1);
}

// The scale of attention for divided angles: YaRN's 0.1 ln(factor) + 1.
double magnitude(double factor, double weight = 1) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

std::string clamped(std::string_view x) { return fmt::format("least(greatest({}, 0), 1)", x); }

// The index of the first pair that makes `turns` rotations within the original length.
double pair_of(double turns, const Rotary& rotary, std::int64_t original) {
  return static_cast<double>(rotary.turned) *
         std::log(static_cast<double>(original) / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rotary.base));
}

Status read_llama3(Config& scaling, std::int64_t original, Rotary& rotary) {
  WEFT_TRY(factor, scale_of(scaling, "factor"));
  WEFT_TRY(low, scale_of(scaling, "low_freq_factor"));
  WEFT_TRY(high, scale_of(scaling, "high_freq_factor"));
  if (!(high > low))
    return scaling.refuse("high_freq_factor", fmt::format("expected more than low_freq_factor, {}", low));
  rotary.factor = factor;
  rotary.keep = clamped(fmt::format("(pace * {} - {}) / {}",
                                    static_cast<double>(original) / (2 * std::numbers::pi), low, high - low));
  return {};
}

Status read_yarn(Config& scaling, RotarySizes sizes, std::int64_t original, Rotary& rotary) {
  if (rotary.base <= 1) return user_error("rope_theta: expected more than 1 for yarn");
  WEFT_TRY(factor,
           scale_or(scaling, "factor", static_cast<double>(sizes.positions) / static_cast<double>(original)));
  WEFT_TRY(fast, scaling.number_or("beta_fast", 32));
  WEFT_TRY(slow, scaling.number_or("beta_slow", 1));
  WEFT_TRY(whole, scaling.truth_or("truncate", true));
  WEFT_TRY(weight, scaling.number_or("mscale", 0));
  WEFT_TRY(weight_of_all, scaling.number_or("mscale_all_dim", 0));
  const double ratio = weight != 0 && weight_of_all != 0
                           ? magnitude(factor, weight) / magnitude(factor, weight_of_all)
                           : magnitude(factor);
  WEFT_TRY(attention, scale_or(scaling, "attention_factor", ratio));
  if (fast == 0) fast = 32;  // the class treats 0 as absent
  if (slow == 0) slow = 1;
  if (!(slow > 0 && fast >= slow && fast <= kMostScale))
    return scaling.refuse("beta_fast", fmt::format("expected at least beta_slow, {}", slow));
  double first = pair_of(fast, rotary, original), last = pair_of(slow, rotary, original);
  if (whole) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(rotary.turned - 1));
  if (first == last) last += 0.001;
  rotary.factor = factor;
  rotary.attention = attention;
  if (weight_of_all != 0) rotary.scores = std::pow(magnitude(factor, weight_of_all), 2);
  rotary.keep = clamped(fmt::format("({} - CAST(i AS f32)) / {}", last, last - first));
  return {};
}

Status read_longrope(Config& scaling, RotarySizes sizes, std::int64_t original, Rotary& rotary) {
  WEFT_TRY(factor,
           scale_or(scaling, "factor", static_cast<double>(sizes.positions) / static_cast<double>(original)));
  const double ratio =
      factor <= 1 ? 1
                  : std::sqrt(1 + std::log(factor) /
                                      std::log(static_cast<double>(std::max<std::int64_t>(original, 2))));
  WEFT_TRY(attention, scale_or(scaling, "attention_factor", ratio));
  rotary.attention = attention;
  rotary.original = original;
  for (const char* key : {"short_factor", "long_factor"}) {
    WEFT_TRY(divisors, scaling.numbers(key));
    if (static_cast<std::int64_t>(divisors.size()) != rotary.turned / 2)
      return user_error(fmt::format("{}{}: expected {} numbers, one per rotary pair, found {}",
                                    scaling.path(), key, rotary.turned / 2, divisors.size()));
    for (const double divisor : divisors)
      if (!(divisor >= kLeastScale && divisor <= kMostScale))
        return user_error(fmt::format("{}{}: expected numbers from {} to {}, found {}", scaling.path(), key,
                                      kLeastScale, kMostScale, divisor));
    (key[0] == 's' ? rotary.divisors : rotary.long_divisors) = std::move(divisors);
  }
  return {};
}

// The original length, from the object or the file. Fails if they disagree.
Result<std::int64_t> original_of(Config& config, Config& scaling, const RotaryFields& fields,
                                 std::int64_t positions) {
  constexpr const char* kKey = "original_max_position_embeddings";
  WEFT_TRY(own, config.size_or(kKey, fields.original > 0 ? fields.original : positions));
  WEFT_TRY(inner, scaling.size_or(kKey, own));
  if (inner != own && (config.has(kKey) || fields.original > 0))
    return scaling.refuse(kKey, fmt::format("expected {}, the value at the top level of the file", own))
        .error();
  return inner;
}

// Sets how many features are rotated.
Status set_part(Config& config, const RotaryFields& fields, RotarySizes sizes, double part, Rotary& rotary) {
  if (!(part > 0 && part <= 1) || (part != 1 && !fields.some_may_rest))
    return user_error(fmt::format(
        "{}{}: expected {}, found {}", config.path(), fields.part,
        fields.some_may_rest ? "a number above 0 and up to 1" : "1, the only value that the class supports",
        part));
  rotary.turned = static_cast<std::int64_t>(static_cast<double>(sizes.head) * part);
  if (rotary.turned < 2 || rotary.turned % 2 != 0)
    return user_error(
        fmt::format("head_dim: expected an even number of rotary features, found {}", rotary.turned));
  rotary.partial = rotary.turned < sizes.head;
  return {};
}

Status check_base(const Rotary& rotary, const char* key) {
  if (rotary.base >= 1 && rotary.base <= 1e15) return {};
  return user_error(fmt::format("{}: expected a number from 1 to 1e15, found {}", key, rotary.base));
}

// Reads one scaling object: {"rope_type": "yarn", "factor": 4, ..}
Status read_scaling(Request& request, Config& scaling, const RotaryFields& fields, RotarySizes sizes,
                    Rotary& rotary, std::vector<std::string>& notes) {
  WEFT_TRY(base, scaling.number_or("rope_theta", rotary.base));
  rotary.base = base;
  WEFT_TRY_STATUS(check_base(rotary, "rope_theta"));
  if (scaling.has("partial_rotary_factor")) {
    WEFT_TRY(part, scaling.number_or("partial_rotary_factor", 1));
    WEFT_TRY_STATUS(set_part(scaling, fields, sizes, part, rotary));
  }
  WEFT_TRY(older, scaling.word_or("type", "default"));
  WEFT_TRY(type, scaling.word_or("rope_type", older));
  if (fields.only_longrope && (type == "su" || type == "yarn")) type = "longrope";
  if (type == "default") return {};
  const std::string where = scaling.path() + "rope_type";
  if (request.options.plain_rotary) {
    notes.push_back(fmt::format("{} '{}' is not applied: results differ", where, formats::shown(type)));
    return {};
  }
  WEFT_TRY(original, original_of(request.config, scaling, fields, sizes.positions));
  if (type == "longrope") return read_longrope(scaling, sizes, original, rotary);
  if (type == "llama3" && !fields.only_longrope) return read_llama3(scaling, original, rotary);
  if (type == "yarn") return read_yarn(scaling, sizes, original, rotary);
  if (type == "linear" && !fields.only_longrope) {
    WEFT_TRY(factor, scale_of(scaling, "factor"));
    rotary.factor = factor;
    return {};
  }
  if (type == "dynamic" && !fields.only_longrope) {
    WEFT_TRY(factor, scale_of(scaling, "factor"));
    notes.push_back(fmt::format("dynamic rotary scaling (factor {}) applies beyond {} tokens: omitted",
                                factor, sizes.positions));
    return {};
  }
  return user_error(fmt::format("{}: unknown scaling '{}'", where, formats::shown(type)),
                    fields.only_longrope ? "known are default and longrope"
                                         : "known are default, dynamic, linear, llama3, longrope and yarn");
}

std::string list_of(const std::vector<double>& divisors) {
  std::string text;
  for (std::size_t i = 0; i < divisors.size(); ++i)
    text += i == 0 ? fmt::format("concat(CAST({} AS f32), ", divisors[i]) : fmt::format("{}, ", divisors[i]);
  return text + "along => i)";
}

}  // namespace

Result<Rotary> read_rotary(Request& request, const RotaryFields& fields, RotarySizes sizes,
                           std::vector<std::string>& notes) {
  Config& config = request.config;
  Rotary rotary;
  WEFT_TRY(base, config.number_or(fields.base, fields.base_otherwise));
  rotary.base = base;
  WEFT_TRY_STATUS(check_base(rotary, fields.base));
  WEFT_TRY(part, config.number_or(fields.part, fields.part_otherwise));
  WEFT_TRY_STATUS(set_part(config, fields, sizes, part, rotary));
  // transformers 5 keeps everything in one object, earlier versions only the scaling.
  if (config.has("rope_scaling") && config.has("rope_parameters"))
    return config.refuse("rope_scaling", "expected either it or rope_parameters, found both").error();
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    WEFT_TRY(scaling, config.object(key));
    for (const char* kind : {"full_attention", "sliding_attention"})
      if (scaling.has(kind)) return scaling.refuse(kind, "expected one scaling for all layers").error();
    WEFT_TRY_STATUS(read_scaling(request, scaling, fields, sizes, rotary, notes));
    config.hand_over(scaling);
  }
  return rotary;
}

Result<TwoRotaries> read_two_rotaries(Request& request, RotarySizes sizes, std::vector<std::string>& notes) {
  Config& config = request.config;
  const RotaryFields fields;
  TwoRotaries both;
  WEFT_TRY(far, config.number_or("rope_theta", 1e6));
  WEFT_TRY(near, config.number_or("rope_local_base_freq", 1e4));
  WEFT_TRY(part, config.number_or(fields.part, 1));
  both.full.base = far;
  both.sliding.base = near;
  both.sliding.suffix = "_local";
  for (Rotary* rotary : {&both.full, &both.sliding}) {
    WEFT_TRY_STATUS(check_base(*rotary, "rope_theta"));
    WEFT_TRY_STATUS(set_part(config, fields, sizes, part, *rotary));
  }
  if (config.has("rope_scaling") && config.has("rope_parameters"))
    return config.refuse("rope_scaling", "expected either it or rope_parameters, found both").error();
  if (config.has("rope_scaling")) {
    WEFT_TRY(scaling, config.object("rope_scaling"));
    WEFT_TRY_STATUS(read_scaling(request, scaling, fields, sizes, both.full, notes));
    config.hand_over(scaling);
  }
  if (config.has("rope_parameters")) {
    WEFT_TRY(parameters, config.object("rope_parameters"));
    for (const char* key : {"rope_type", "rope_theta", "factor"})
      if (parameters.has(key))
        return parameters.refuse(key, "expected it in full_attention or sliding_attention").error();
    for (const auto& [kind, rotary] :
         {std::pair{"full_attention", &both.full}, {"sliding_attention", &both.sliding}}) {
      if (!parameters.has(kind)) continue;
      WEFT_TRY(scaling, parameters.object(kind));
      WEFT_TRY_STATUS(read_scaling(request, scaling, fields, sizes, *rotary, notes));
      config.hand_over(scaling);
    }
    config.hand_over(parameters);
  }
  return both;
}

void add_rotary_tables(LayerText& body, const std::vector<Rotary>& rotaries) {
  bool first = true;
  for (const Rotary& rotary : rotaries) {
    if (!rotary.scaled()) continue;
    const std::string& suffix = rotary.suffix;
    if (first) {
      body.size("i", rotary.turned / 2);
      body.with("spots", "SELECT zeros(s, i) FROM tokens");
    }
    first = false;
    body.with("pace", fmt::format("SELECT exp(CAST(i AS f32) * {}) FROM spots GROUP BY i",
                                  -2 * std::log(rotary.base) / static_cast<double>(rotary.turned)));
    std::string angle = "CAST(s AS f32) * pace", from = "pace, spots";
    if (!rotary.divisors.empty()) {
      body.with("short", fmt::format("SELECT {} FROM pace", list_of(rotary.divisors)));
      body.with("long", fmt::format("SELECT {} FROM pace", list_of(rotary.long_divisors)));
      body.with("divisor",
                fmt::format("SELECT CASE WHEN size(s) > {} THEN long ELSE short END FROM short, long",
                            rotary.original));
      angle += " / divisor";
      from = "pace, divisor, spots";
    } else if (!rotary.keep.empty()) {
      body.with("keep", fmt::format("SELECT {} FROM pace, spots GROUP BY i", rotary.keep));
      angle += fmt::format(" * (keep + (1 - keep) / {})", rotary.factor);
      from = "pace, keep, spots";
    } else {
      angle += fmt::format(" / {}", rotary.factor);
    }
    body.with("turn", fmt::format("SELECT {} FROM {} GROUP BY s, i", angle, from));
    const std::string times = rotary.attention == 1 ? "" : fmt::format(" * {}", rotary.attention);
    body.with("cosine" + suffix, fmt::format("SELECT CAST(cos(turn){} AS precision) FROM turn", times));
    body.with("sine" + suffix, fmt::format("SELECT CAST(sin(turn){} AS precision) FROM turn", times));
  }
}

std::string rotary_arguments(const Rotary& rotary) {
  return rotary.scaled() ? ", cosine[s, i], sine[s, i]" : "";
}

std::string rotary_call_arguments(const Rotary& rotary) {
  return rotary.scaled() ? fmt::format(", cosine{0}, sine{0}", rotary.suffix) : "";
}

void add_rotary_sizes(LayerText& layer, const Rotary& rotary, const std::string& features) {
  if (rotary.partial) layer.size("r", rotary.turned);
  if (rotary.scaled()) layer.size("i", rotary.turned / 2, (rotary.partial ? "r" : features) + " / 2");
}

std::string rotary_options(const Rotary& rotary, const std::string& features) {
  return fmt::format(", along => s, pairs => {}, base => {}", features, rotary.base);
}

void add_rotated(LayerText& layer, const std::string& name, const Rotary& rotary,
                 const std::string& features) {
  const std::string rest = rotary.partial ? fmt::format(", {}_rest", name) : "";
  if (rotary.partial)
    layer.with(name + "_rest", fmt::format("SELECT {0} FROM {0} WHERE {1} >= r", name, features));
  if (!rotary.scaled()) {
    const std::string turned = fmt::format("rotary({}{})", name, rotary_options(rotary, features));
    if (!rotary.partial) return layer.with(name, fmt::format("SELECT {} FROM {}", turned, name));
    layer.with(name + "_turned", fmt::format("SELECT {} FROM {} WHERE {} < r", turned, name, features));
    return layer.with(name, fmt::format("SELECT concat({0}_turned{1}, along => {2}) FROM {0}_turned{1}", name,
                                        rest, features));
  }
  layer.with(name + "_left", fmt::format("SELECT {0} FROM {0} WHERE {1} < i", name, features));
  layer.with(name + "_right", fmt::format("SELECT {0} FROM {0} WHERE {1} >= i{2}", name, features,
                                          rotary.partial ? fmt::format(" AND {} < r", features) : ""));
  layer.with(name, fmt::format("SELECT concat({0}_left * cosine - {0}_right * sine, "
                               "{0}_right * cosine + {0}_left * sine{1}, along => {2}) "
                               "FROM {0}_left, {0}_right{1}, cosine[s, i AS {2}], sine[s, i AS {2}]",
                               name, rest, features));
}

}  // namespace weft::imports
