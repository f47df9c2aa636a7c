// weft/translate/imports/rotary.h -- rotary positions of a config.json.
//
// These are the base, partial rotation, and angle scaling (linear, llama3, yarn, longrope; dynamic
// up to the length that it does not scale). Plain angles use the rotary operator. Scaled ones use
// two tables that the model computes once, for pair i of features:
//
//   pace   AS (SELECT exp(CAST(i AS f32) * -0.205) FROM spots GROUP BY i),        base^(-2 i / r)
//   keep   AS (SELECT least(greatest((pace * 1303.8 - 1) / 3, 0), 1) FROM pace),  1: plain, 0: divided
//   turn   AS (SELECT CAST(s AS f32) * pace * (keep + (1 - keep) / 8) FROM pace, keep, spots
//              GROUP BY s, i),
//   cosine AS (SELECT CAST(cos(turn) AS precision) FROM turn), sine AS ..
//
// Each attention layer receives them as arguments.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/architectures.h"

namespace weft::imports {

struct Rotary {
  double base = 10000;
  std::int64_t turned = 0;    // number of rotated features per head, the first ones
  bool partial = false;       // some features are not rotated
  double factor = 1;          // divides the angles
  std::string keep = {};      // the share not divided, an expression of pace and i
  double attention = 1;       // multiplies cosines and sines
  double scores = 1;          // multiplies attention scores
  std::int64_t original = 0;  // texts longer than this use long_divisors
  std::vector<double> divisors = {}, long_divisors = {};  // one per pair
  std::string suffix = {};                                // suffix of the table names

  bool scaled() const { return factor != 1 || attention != 1 || !divisors.empty(); }
};

// The field names and defaults of a family.
struct RotaryFields {
  const char* base = "rope_theta";
  double base_otherwise = 10000;
  const char* part = "partial_rotary_factor";
  double part_otherwise = 1;
  bool some_may_rest = false;  // the class supports partial rotation
  bool only_longrope = false;  // the class calls longrope yarn
  std::int64_t original = 0;   // the class's default; 0: as many as positions
};
struct RotarySizes {
  std::int64_t head = 0, positions = 0;
};

Result<Rotary> read_rotary(Request& request, const RotaryFields& fields, RotarySizes sizes,
                           std::vector<std::string>& notes);
// Gemma 3: sliding-window layers use plain angles with another base.
struct TwoRotaries {
  Rotary full, sliding;
};
Result<TwoRotaries> read_two_rotaries(Request& request, RotarySizes sizes, std::vector<std::string>& notes);

// In the model: the tables of scaled angles.
void add_rotary_tables(LayerText& body, const std::vector<Rotary>& rotaries);
// In a layer: further arguments, sizes, and the rotated value `name`[.., s, e].
std::string rotary_arguments(const Rotary& rotary);
std::string rotary_call_arguments(const Rotary& rotary);  // the arguments in the call
void add_rotary_sizes(LayerText& layer, const Rotary& rotary, const std::string& features);
void add_rotated(LayerText& layer, const std::string& name, const Rotary& rotary,
                 const std::string& features);
// ", along => s, pairs => e, base => 10000"
std::string rotary_options(const Rotary& rotary, const std::string& features);

}  // namespace weft::imports
