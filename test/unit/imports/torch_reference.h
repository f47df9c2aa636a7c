// A reimplementation of transformers: rows of numbers and the modules of its decoders, on tensors
// with a checkpoint's names and shapes. Shares nothing with the importer.
#pragma once
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/formats/safetensors.h"

namespace weft::imports {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

// Tensors are drawn on first use, so the checkpoint has exactly those that the class reads.
class DrawnCheckpoint {
 public:
  const std::vector<float>& tensor(const std::string& name, std::vector<std::int64_t> shape) {
    if (const auto found = tensors_.find(name); found != tensors_.end()) return found->second.values;
    Drawn& drawn = tensors_[name];
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    for (std::int64_t i = 0; i < elements; ++i)
      drawn.values.push_back(static_cast<float>(random_.uniform() - 0.5));
    drawn.shape = std::move(shape);
    return drawn.values;
  }

  formats::Checkpoint checkpoint() const {
    formats::Checkpoint file;
    for (const auto& [name, drawn] : tensors_)
      file.tensors.push_back({name, plan::DType::f32, drawn.shape, std::as_bytes(std::span(drawn.values))});
    return file;
  }

  // y = x W^T + b, W[outputs, inputs].
  Rows linear(const Rows& x, const std::string& name, std::size_t outputs, bool biased) {
    const std::size_t inputs = x.front().size();
    const auto& weight =
        tensor(name + ".weight", {static_cast<std::int64_t>(outputs), static_cast<std::int64_t>(inputs)});
    Rows y(x.size(), Row(outputs, 0));
    for (std::size_t s = 0; s < x.size(); ++s)
      for (std::size_t o = 0; o < outputs; ++o) {
        for (std::size_t i = 0; i < inputs; ++i) y[s][o] += x[s][i] * weight[o * inputs + i];
        if (biased) y[s][o] += tensor(name + ".bias", {static_cast<std::int64_t>(outputs)})[o];
      }
    return y;
  }
  Rows embedding(const std::vector<int>& tokens, const std::string& name, std::size_t words,
                 std::size_t features) {
    const auto& weight =
        tensor(name, {static_cast<std::int64_t>(words), static_cast<std::int64_t>(features)});
    Rows y;
    for (const int token : tokens) {
      const auto begin =
          weight.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * features);
      y.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(features));
    }
    return y;
  }
  // x / sqrt(mean(x^2) + eps), times weight + `around`.
  Rows rms_norm(Rows x, const std::string& name, double eps, double around = 0) {
    const auto& weight = tensor(name, {static_cast<std::int64_t>(x.front().size())});
    for (Row& row : x) {
      double squares = 0;
      for (const double value : row) squares += value * value;
      const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + eps);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] *= scale * (weight[i] + around);
    }
    return x;
  }
  Rows layer_norm(Rows x, const std::string& name, double eps) {
    for (Row& row : x) {
      double mean = 0, squares = 0;
      for (const double value : row) mean += value / static_cast<double>(row.size());
      for (const double value : row)
        squares += (value - mean) * (value - mean) / static_cast<double>(row.size());
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = (row[i] - mean) / std::sqrt(squares + eps);
        if (name.empty()) continue;
        const auto size = static_cast<std::int64_t>(row.size());
        row[i] = row[i] * tensor(name + ".weight", {size})[i] + tensor(name + ".bias", {size})[i];
      }
    }
    return x;
  }

 private:
  struct Drawn {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  Random random_{7};
  std::map<std::string, Drawn> tensors_;
};

inline Rows added(Rows a, const Rows& b) {
  for (std::size_t s = 0; s < a.size(); ++s)
    for (std::size_t i = 0; i < a[s].size(); ++i) a[s][i] += b[s][i];
  return a;
}
inline Rows each(Rows x, const std::function<double(double)>& function) {
  for (Row& row : x)
    for (double& value : row) value = function(value);
  return x;
}
inline Rows product(Rows a, const Rows& b) {
  for (std::size_t s = 0; s < a.size(); ++s)
    for (std::size_t i = 0; i < a[s].size(); ++i) a[s][i] *= b[s][i];
  return a;
}
// Columns begin .. begin + count - 1.
inline Rows columns(const Rows& x, std::size_t begin, std::size_t count) {
  Rows y;
  for (const Row& row : x)
    y.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(begin),
                   row.begin() + static_cast<std::ptrdiff_t>(begin + count));
  return y;
}
inline double silu(double x) { return x / (1 + std::exp(-x)); }
inline double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

// -- rotary positions

inline Row plain_frequencies(std::size_t turned, double base) {
  Row inverse;
  for (std::size_t i = 0; i < turned; i += 2)
    inverse.push_back(1 / std::pow(base, static_cast<double>(i) / static_cast<double>(turned)));
  return inverse;
}
// By the wavelength of each: kept, divided, or interpolated.
inline Row llama3_frequencies(Row inverse, double factor, double low, double high, double original) {
  for (double& one : inverse) {
    const double length = 2 * std::numbers::pi / one;
    if (length > original / low) {
      one /= factor;
    } else if (length >= original / high) {
      const double smooth = (original / length - low) / (high - low);
      one = (1 - smooth) * one / factor + smooth * one;
    }
  }
  return inverse;
}
inline Row yarn_frequencies(std::size_t turned, double base, double factor, double fast, double slow,
                            double original) {
  const auto dim = static_cast<double>(turned);
  const auto correction = [&](double turns) {
    return dim * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double low = std::max(std::floor(correction(fast)), 0.0),
               high = std::min(std::ceil(correction(slow)), dim - 1);
  Row inverse = plain_frequencies(turned, base);
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double width = high == low ? 0.001 : high - low;
    const double ramp = std::min(std::max((static_cast<double>(i) - low) / width, 0.0), 1.0);
    inverse[i] = inverse[i] / factor * ramp + inverse[i] * (1 - ramp);
  }
  return inverse;
}

struct Turning {
  Row frequencies;       // empty: no rotation
  double attention = 1;  // factor on cosines and sines
};

// Rotates the first features of a head by halves: (a, b) to (a cos - b sin, b cos + a sin).
inline void turn(Row& head, std::size_t position, const Turning& turning) {
  const std::size_t half = turning.frequencies.size();
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * turning.frequencies[i];
    const double c = std::cos(angle) * turning.attention, s = std::sin(angle) * turning.attention;
    const double a = head[i], b = head[i + half];
    head[i] = a * c - b * s;
    head[i + half] = b * c + a * s;
  }
}

struct AttentionGeometry {
  std::size_t heads = 0, key_heads = 0, size = 0;
  std::size_t window = 0;  // 0: all earlier positions
  double scale = 0, cap = 0;
  std::function<double(std::size_t head)> slope = {};
  bool causal = true;
  Turning turning = {};
};

// q[s, heads * size], k and v[t, key_heads * size] to [s, heads * size].
inline Rows attend(const Rows& q, const Rows& k, const Rows& v, const AttentionGeometry& of) {
  Rows y(q.size(), Row(of.heads * of.size, 0));
  const auto part = [&](const Row& row, std::size_t head) {
    return Row(row.begin() + static_cast<std::ptrdiff_t>(head * of.size),
               row.begin() + static_cast<std::ptrdiff_t>((head + 1) * of.size));
  };
  for (std::size_t h = 0; h < of.heads; ++h) {
    const std::size_t key_head = h / (of.heads / of.key_heads);
    for (std::size_t s = 0; s < q.size(); ++s) {
      Row query = part(q[s], h);
      turn(query, s, of.turning);
      Row scores(k.size(), -INFINITY);
      double total = 0;
      for (std::size_t t = 0; t < k.size(); ++t) {
        if (of.causal && (t > s || (of.window > 0 && s - t >= of.window))) continue;
        Row key = part(k[t], key_head);
        turn(key, t, of.turning);
        double score = 0;
        for (std::size_t e = 0; e < of.size; ++e) score += query[e] * key[e];
        if (of.slope) score += of.slope(h) * static_cast<double>(t);
        score *= of.scale;
        scores[t] = of.cap > 0 ? of.cap * std::tanh(score / of.cap) : score;
        total += std::exp(scores[t]);
      }
      for (std::size_t t = 0; t < k.size(); ++t)
        for (std::size_t e = 0; e < of.size; ++e)
          y[s][h * of.size + e] += std::exp(scores[t]) / total * v[t][key_head * of.size + e];
    }
  }
  return y;
}

}  // namespace weft::imports
