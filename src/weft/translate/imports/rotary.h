// weft/translate/imports/rotary.h -- rotary positions as a config.json has them: the base, features that do not turn, and angles
// that are scaled (linear, llama3, yarn, longrope; dynamic within the length that it leaves alone).
//
// Plain angles are the operator's own. Scaled ones are two tables that the model makes once, for pair i of features:
//
//   pace   AS (SELECT exp(CAST(i AS f32) * -0.205) FROM spots GROUP BY i),        base^(-2 i / r)
//   keep   AS (SELECT least(greatest((pace * 1303.8 - 1) / 3, 0), 1) FROM pace),  1: as it is, 0: divided by the factor
//   turn   AS (SELECT CAST(s AS f32) * pace * (keep + (1 - keep) / 8) FROM pace, keep, spots GROUP BY s, i),
//   cosine AS (SELECT CAST(cos(turn) AS precision) FROM turn), sine AS ..
//
// and each attention takes them as arguments.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/architectures.h"

namespace weft::imports {

struct Rotary {
  double base = 10000;
  std::int64_t turned = 0;    // features of a head that turn, the first ones
  bool partial = false;       // some do not
  double factor = 1;          // angles are divided by it
  std::string keep = {};      // where they are kept; an expression of pace and i
  double attention = 1;       // cosines and sines are multiplied by it
  double scores = 1;          // and what a query and a key give
  std::int64_t original = 0;  // texts longer than so many words have other divisors
  std::vector<double> divisors = {}, long_divisors = {};  // one for each pair
  std::string suffix = {};                                // of its tables' names

  bool scaled() const { return factor != 1 || attention != 1 || !divisors.empty(); }
};

// Where a family has what.
struct RotaryFields {
  const char* base = "rope_theta";
  double base_otherwise = 10000;
  const char* part = "partial_rotary_factor";
  double part_otherwise = 1;
  bool some_may_rest = false;  // the class knows features that do not turn
  bool only_longrope = false;  // yarn is its name for longrope
  std::int64_t original = 0;   // of the class; 0: as many as positions
};
struct RotarySizes {
  std::int64_t head = 0, positions = 0;
};

Result<Rotary> read_rotary(Request& request, const RotaryFields& fields, RotarySizes sizes,
                           std::vector<std::string>& notes);
// Gemma 3: layers that see a window turn by plain angles of their own base.
struct TwoRotaries {
  Rotary full, sliding;
};
Result<TwoRotaries> read_two_rotaries(Request& request, RotarySizes sizes, std::vector<std::string>& notes);

// In the model: the tables of those that are scaled.
void add_rotary_tables(LayerText& body, const std::vector<Rotary>& rotaries);
// In a layer: its arguments behind the first, its sizes, and the value `name`, [.., s, e], turned.
std::string rotary_arguments(const Rotary& rotary);
std::string rotary_given(const Rotary& rotary);  // as the call names them
void add_rotary_sizes(LayerText& layer, const Rotary& rotary, const std::string& features);
void add_turned(LayerText& layer, const std::string& name, const Rotary& rotary, const std::string& features);
// ", along => s, pairs => e, base => 10000"
std::string rotary_options(const Rotary& rotary, const std::string& features);

}  // namespace weft::imports
