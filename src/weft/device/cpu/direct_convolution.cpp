#include "weft/device/cpu/direct_convolution.h"

#include <algorithm>

#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/phased_plane.h"

namespace weft::device::cpu {
namespace {

constexpr std::int64_t kMostTaps = 64;    // elements per window
constexpr std::int64_t kLongLine = 1024;  // floats: images share a line up to this length

// Planes of several images in one line: [phase][image][row][column], per channel.
struct Line {
  std::int64_t rows, columns;  // of a plane
  std::int64_t images, phases;

  std::int64_t plane() const { return rows * columns; }
  std::int64_t phase() const { return images * plane(); }
  std::int64_t channel() const { return phases * phase(); }
  std::int64_t places() const { return phase() + kSlack; }  // positions in a line of results, with slack
};

struct Shapes {
  explicit Shapes(const Convolution& c)
      : conv(c),
        in(c.in / c.groups),
        out(c.out / c.groups),
        taps(c.kernel_height * c.kernel_width),
        high(std::max(c.height + c.padding_height, (c.out_height - 1) * c.stride + c.kernel_height)),
        wide(std::max(c.width + c.padding_width, (c.out_width - 1) * c.stride + c.kernel_width)),
        above((c.kernel_height - 1) / c.stride),
        left((c.kernel_width - 1) / c.stride) {
    const auto share = [&](std::int64_t size) { return (size + c.stride - 1) / c.stride; };
    const auto images = [&](std::int64_t rows, std::int64_t columns) {
      return std::clamp<std::int64_t>(kLongLine / (rows * columns), 1, std::max<std::int64_t>(c.batch, 1));
    };
    windows = {share(high), share(wide), 0, c.stride * c.stride};
    windows.images = images(windows.rows, windows.columns);
    // dy with room for windows that reach above and left of it.
    results = {share(high) + above, share(wide) + left, 0, 1};
    results.images = images(results.rows, results.columns);
  }

  const Convolution& conv;
  std::int64_t in, out;  // channels per group
  std::int64_t taps;
  std::int64_t high, wide;   // of an image with its border
  std::int64_t above, left;  // window positions above and left that overlap a given one
  Line windows, results;     // for x, and for dy in the input gradient

  std::int64_t window_floats() const { return in * windows.channel() + kSlack; }
  std::int64_t place_floats() const { return out * windows.places(); }
  std::int64_t result_floats() const { return out * results.channel() + kSlack; }
  std::int64_t input_floats() const { return in * results.places(); }
  std::int64_t weight_floats() const { return in * out * taps; }
};

// Writes images [image, image + images) of channels [first, first + count) as lines, with zero
// borders.
void fill_windows(const Shapes& shapes, std::int64_t image, std::int64_t images, std::int64_t first,
                  std::int64_t count, const float* x, float* lines) {
  const Convolution& conv = shapes.conv;
  const Line& line = shapes.windows;
  std::fill_n(lines, count * line.channel() + kSlack, 0.0f);
  const PhasedPlane plane{.height = conv.height,
                          .width = conv.width,
                          .padding = conv.padding_height,
                          .padding_width = conv.padding_width,
                          .stride = conv.stride,
                          .columns = line.columns,
                          .phase = line.phase()};
  for (std::int64_t c = 0; c < count; ++c)
    for (std::int64_t i = 0; i < images; ++i)
      split_plane(plane, x + ((image + i) * conv.in + first + c) * conv.height * conv.width,
                  lines + c * line.channel() + i * line.plane());
}

// Offsets of the window's elements relative to its position.
void find_window(const Shapes& shapes, std::int64_t* offsets) {
  const Line& line = shapes.windows;
  const std::int64_t s = shapes.conv.stride;
  for (std::int64_t r = 0; r < shapes.conv.kernel_height; ++r)
    for (std::int64_t q = 0; q < shapes.conv.kernel_width; ++q)
      *offsets++ = (r % s * s + q % s) * line.phase() + r / s * line.columns + q / s;
}

// Line length up to the last window position in the last image.
std::int64_t length_of(const Shapes& shapes, std::int64_t images) {
  const Line& line = shapes.windows;
  return (images - 1) * line.plane() + (shapes.conv.out_height - 1) * line.columns + shapes.conv.out_width;
}

// Calls act(offset in y, offset in the line of results) for each plane of y.
template <class Act>
void for_planes(const Shapes& shapes, std::int64_t image, std::int64_t images, std::int64_t group, Act act) {
  const Convolution& conv = shapes.conv;
  const Line& line = shapes.windows;
  for (std::int64_t o = 0; o < shapes.out; ++o)
    for (std::int64_t i = 0; i < images; ++i)
      act(((image + i) * conv.out + group * shapes.out + o) * conv.out_height * conv.out_width,
          o * line.places() + i * line.plane());
}

// Calls run(image, images) for each line.
template <class Run>
void for_lines(const Line& line, std::int64_t begin, std::int64_t end, Run run) {
  for (std::int64_t image = begin; image < end; image += line.images)
    run(image, std::min(line.images, end - image));
}

// dy as lines with room for windows that reach past its edges.
void fill_results(const Shapes& shapes, std::int64_t image, std::int64_t images, std::int64_t group,
                  const float* dy, float* lines) {
  const Convolution& conv = shapes.conv;
  const Line& line = shapes.results;
  std::fill_n(lines, shapes.result_floats(), 0.0f);
  for (std::int64_t o = 0; o < shapes.out; ++o)
    for (std::int64_t i = 0; i < images; ++i)
      copy_rows(conv.out_height, conv.out_width,
                dy + ((image + i) * conv.out + group * shapes.out + o) * conv.out_height * conv.out_width,
                conv.out_width,
                lines + o * line.channel() + i * line.plane() + shapes.above * line.columns + shapes.left,
                line.columns);
}

// Copies the gradients of rows a, a + s, .. and columns b, b + s, .. of the bordered x into dx.
void take_phase(const Shapes& shapes, std::int64_t image, std::int64_t images, std::int64_t group,
                std::int64_t a, std::int64_t b, const float* lines, float* dx) {
  const Convolution& conv = shapes.conv;
  const Line& line = shapes.results;
  const std::int64_t s = conv.stride;
  // The first row and column inside the image.
  const auto first = [&](std::int64_t padding, std::int64_t phase) {
    return padding > phase ? (padding - phase + s - 1) / s : 0;
  };
  const std::int64_t u0 = first(conv.padding_height, a), v0 = first(conv.padding_width, b);
  const std::int64_t h0 = u0 * s + a - conv.padding_height, w0 = v0 * s + b - conv.padding_width;
  if (h0 >= conv.height || w0 >= conv.width) return;
  const std::int64_t n = (conv.width - w0 + s - 1) / s;
  const std::int64_t rows = (conv.height - h0 + s - 1) / s;
  for (std::int64_t c = 0; c < shapes.in; ++c)
    for (std::int64_t i = 0; i < images; ++i) {
      const float* from = lines + c * line.places() + i * line.plane() + u0 * line.columns + v0;
      float* to = dx + (((image + i) * conv.in + group * shapes.in + c) * conv.height + h0) * conv.width + w0;
      if (s == 1) {
        copy_rows(rows, n, from, line.columns, to, conv.width);
        continue;
      }
      for (std::int64_t row = 0; row < rows; ++row, from += line.columns, to += s * conv.width)
        for (std::int64_t t = 0; t < n; ++t) to[t * s] = from[t];
    }
}

}  // namespace

// kFew limits the channel pairs per group. Measured on a Xeon with AVX-512.
bool slides(const Convolution& conv) {
  constexpr std::int64_t kFew = 64 * 64;
  const std::int64_t taps = conv.kernel_height * conv.kernel_width;
  return taps > 1 && taps <= kMostTaps && conv.in / conv.groups * (conv.out / conv.groups) <= kFew;
}

bool slides_back(const Convolution& conv) {
  constexpr std::int64_t kFew = 256;
  return slides(conv) && conv.in / conv.groups * (conv.out / conv.groups) <= kFew;
}

bool slides_for_weights(const Convolution& conv) {
  constexpr std::int64_t kFew = 64;
  return slides(conv) && conv.in / conv.groups * (conv.out / conv.groups) <= kFew;
}

std::size_t direct_scratch_bytes(const Convolution& conv) {
  const Shapes shapes(conv);
  return static_cast<std::size_t>(
             std::max(shapes.window_floats() + shapes.place_floats(),
                      shapes.result_floats() + shapes.input_floats() + shapes.weight_floats())) *
         sizeof(float);
}

void direct_convolve(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* x,
                     const float* w, float* y, void* scratch) {
  const Shapes shapes(conv);
  std::int64_t offsets[kMostTaps];
  find_window(shapes, offsets);
  float* const lines = static_cast<float*>(scratch);
  float* const places = lines + shapes.window_floats();
  for (std::int64_t group = 0; group < conv.groups; ++group)
    for_lines(shapes.windows, begin, end, [&](std::int64_t image, std::int64_t images) {
      fill_windows(shapes, image, images, group * shapes.in, shapes.in, x, lines);
      correlate({.x = lines,
                 .channel = shapes.windows.channel(),
                 .channels = shapes.in,
                 .offsets = offsets,
                 .taps = shapes.taps,
                 .w = w + group * shapes.weight_floats(),
                 .w_out = shapes.in * shapes.taps,
                 .outs = shapes.out,
                 .length = length_of(shapes, images),
                 .y = places,
                 .y_out = shapes.windows.places()});
      for_planes(shapes, image, images, group, [&](std::int64_t in_y, std::int64_t in_line) {
        copy_rows(conv.out_height, conv.out_width, places + in_line, shapes.windows.columns, y + in_y,
                  conv.out_width);
      });
    });
}

void direct_input_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                           const float* w, float* dx, void* scratch) {
  const Shapes shapes(conv);
  const Line& line = shapes.results;
  const std::int64_t s = conv.stride;
  float* const lines = static_cast<float*>(scratch);
  float* const inputs = lines + shapes.result_floats();
  float* const weights = inputs + shapes.input_floats();
  for (std::int64_t group = 0; group < conv.groups; ++group)
    for_lines(line, begin, end, [&](std::int64_t image, std::int64_t images) {
      fill_results(shapes, image, images, group, dy, lines);
      for (std::int64_t a = 0; a < s; ++a)
        for (std::int64_t b = 0; b < s; ++b) {
          // The window elements that reach these rows and columns, and their weights by input
          // channel.
          std::int64_t offsets[kMostTaps], from[kMostTaps], taps = 0;
          for (std::int64_t r = a; r < conv.kernel_height; r += s)
            for (std::int64_t q = b; q < conv.kernel_width; q += s) {
              offsets[taps] = (shapes.above - r / s) * line.columns + shapes.left - q / s;
              from[taps++] = r * conv.kernel_width + q;
            }
          float* to = weights;
          for (std::int64_t c = 0; c < shapes.in; ++c)
            for (std::int64_t o = 0; o < shapes.out; ++o)
              for (std::int64_t k = 0; k < taps; ++k)
                *to++ = w[((group * shapes.out + o) * shapes.in + c) * shapes.taps + from[k]];
          correlate({.x = lines,
                     .channel = line.channel(),
                     .channels = shapes.out,
                     .offsets = offsets,
                     .taps = taps,
                     .w = weights,
                     .w_out = shapes.out * taps,
                     .outs = shapes.in,
                     .length = images * line.plane() - shapes.above * line.columns - shapes.left,
                     .y = inputs,
                     .y_out = line.places()});
          take_phase(shapes, image, images, group, a, b, inputs, dx);
        }
    });
}

void direct_weight_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                            const float* x, float* dw, void* scratch) {
  const Shapes shapes(conv);
  std::int64_t offsets[kMostTaps];
  find_window(shapes, offsets);
  float* const lines = static_cast<float*>(scratch);
  float* const places = lines + shapes.window_floats();
  while (begin < end) {
    const std::int64_t group = begin / shapes.in, first = begin % shapes.in;
    const std::int64_t count = std::min(shapes.in - first, end - begin);
    float* const gradient = dw + (group * shapes.out * shapes.in + first) * shapes.taps;
    for (std::int64_t o = 0; o < shapes.out; ++o)
      std::fill_n(gradient + o * shapes.in * shapes.taps, count * shapes.taps, 0.0f);
    for_lines(shapes.windows, 0, conv.batch, [&](std::int64_t image, std::int64_t images) {
      fill_windows(shapes, image, images, begin, count, x, lines);
      std::fill_n(places, shapes.place_floats(), 0.0f);
      for_planes(shapes, image, images, group, [&](std::int64_t in_y, std::int64_t in_line) {
        copy_rows(conv.out_height, conv.out_width, dy + in_y, conv.out_width, places + in_line,
                  shapes.windows.columns);
      });
      correlate_gradient({.x = lines,
                          .channel = shapes.windows.channel(),
                          .channels = count,
                          .offsets = offsets,
                          .taps = shapes.taps,
                          .w = nullptr,
                          .w_out = shapes.in * shapes.taps,
                          .outs = shapes.out,
                          .length = length_of(shapes, images),
                          .y = places,
                          .y_out = shapes.windows.places()},
                         gradient);
    });
    begin += count;
  }
}

}  // namespace weft::device::cpu
