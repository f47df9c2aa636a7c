#include "weft/device/cpu/convolution.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/direct_convolution.h"

namespace weft::device::cpu {
namespace {

// Enough for a product to run at full speed; a multiple of its tile widths.
constexpr std::int64_t kColumns = 384;

// Equally strided planes of floats: some channels of images, with or without a border.
template <class Float>
struct Planes {
  Float* data;
  std::int64_t image, channel, row;  // strides

  Float* at(std::int64_t i, std::int64_t c, std::int64_t h) const {
    return data + i * image + c * channel + h * row;
  }
};

// How the scratch memory is divided, and the batch into blocks.
struct Layout {
  explicit Layout(const Convolution& c) : Layout(c, 0, c.in / c.groups) {}
  // Only channels [first, first + count) of each group.
  Layout(const Convolution& c, std::int64_t first_channel, std::int64_t count)
      : conv(c),
        first(first_channel),
        in(count),
        out(c.out / c.groups),
        depth(in * c.kernel_height * c.kernel_width),
        places(c.out_height * c.out_width),
        images(std::clamp<std::int64_t>(kColumns / places, 1, std::max<std::int64_t>(c.batch, 1))),
        rows(images > 1 ? c.out_height : std::clamp<std::int64_t>(kColumns / c.out_width, 1, c.out_height)),
        columns(images * rows * c.out_width),
        high(std::max(c.height + c.padding_height, (c.out_height - 1) * c.stride + c.kernel_height)),
        wide(std::max(c.width + c.padding_width, (c.out_width - 1) * c.stride + c.kernel_width)),
        border(high > c.height || wide > c.width),
        plain(depth == in && c.stride == 1 && !border && images == 1 && c.out_height == c.height &&
              c.out_width == c.width) {}

  const Convolution& conv;
  std::int64_t first;    // first input channel to compute, within a group
  std::int64_t in, out;  // input channels to compute and output channels, per group
  std::int64_t depth;    // elements per window
  std::int64_t places;   // window positions per image
  std::int64_t images;   // per block
  std::int64_t rows;     // rows of positions per block: all, or some of one image
  std::int64_t columns;
  std::int64_t high, wide;  // of an image with its border
  bool border;              // has a border
  bool plain;               // 1 x 1 window: an image is its own columns

  std::int64_t window_floats() const { return depth * columns; }
  std::int64_t result_floats() const { return out * columns; }
  std::int64_t border_floats() const { return !border ? 0 : images * in * high * wide; }

  // A block of images of a tensor with `channels` planes, starting at channel `first`.
  template <class Float>
  static Planes<Float> planes(Float* tensor, std::int64_t image, std::int64_t channels, std::int64_t first,
                              std::int64_t height, std::int64_t width) {
    return {tensor + (image * channels + first) * height * width, channels * height * width, height * width,
            width};
  }
  template <class Float>
  Planes<Float> inputs(Float* x, std::int64_t image, std::int64_t group) const {
    return planes(x, image, conv.in, group * (conv.in / conv.groups) + first, conv.height, conv.width);
  }
  template <class Float>
  Planes<Float> results(Float* y, std::int64_t image, std::int64_t group) const {
    return planes(y, image, conv.out, group * out, conv.out_height, conv.out_width);
  }
  Planes<float> bordered(float* scratch) const { return {scratch, in * high * wide, high * wide, wide}; }
};

struct Matrix {
  const float* data;
  std::int64_t step;  // row stride
};

// Calls run(width) with a compile-time width for rows so short that a loop around their copy would
// cost more than the copy.
template <class Run>
void with_width(std::int64_t width, Run run) {
  switch (width) {
    case 4: return run(std::integral_constant<std::int64_t, 4>());
    case 8: return run(std::integral_constant<std::int64_t, 8>());
    case 16: return run(std::integral_constant<std::int64_t, 16>());
    case 64: return run(std::integral_constant<std::int64_t, 64>());
    default: return run(width);
  }
}

// Copies images into planes with a border of zeros.
void add_border(const Layout& layout, std::int64_t images, const Planes<const float>& from,
                const Planes<float>& to) {
  const Convolution& conv = layout.conv;
  std::fill_n(to.data, images * to.image, 0.0f);
  with_width(conv.width, [&](auto width) {
    for (std::int64_t i = 0; i < images; ++i)
      for (std::int64_t c = 0; c < layout.in; ++c)
        for (std::int64_t h = 0; h < conv.height; ++h)
          std::copy_n(from.at(i, c, h), width, to.at(i, c, h + conv.padding_height) + conv.padding_width);
  });
}

void remove_border(const Layout& layout, std::int64_t images, const Planes<float>& from,
                   const Planes<float>& to) {
  const Convolution& conv = layout.conv;
  with_width(conv.width, [&](auto width) {
    for (std::int64_t i = 0; i < images; ++i)
      for (std::int64_t c = 0; c < layout.in; ++c)
        for (std::int64_t h = 0; h < conv.height; ++h)
          std::copy_n(from.at(i, c, h + conv.padding_height) + conv.padding_width, width, to.at(i, c, h));
  });
}

// Calls visit(positions per row, their start in the planes, their start in the columns) for rows of
// positions [row, row + rows) of the images, one window element after the other.
template <class Float, class Visit>
void visit_rows(const Layout& layout, std::int64_t images, std::int64_t row, std::int64_t rows,
                const Planes<Float>& planes, Visit visit) {
  const Convolution& conv = layout.conv;
  with_width(conv.out_width, [&](auto width) {
    std::int64_t column = 0;
    for (std::int64_t c = 0; c < layout.in; ++c)
      for (std::int64_t r = 0; r < conv.kernel_height; ++r)
        for (std::int64_t q = 0; q < conv.kernel_width; ++q)
          for (std::int64_t i = 0; i < images; ++i) {
            Float* place = planes.at(i, c, row * conv.stride + r) + q;
            for (std::int64_t h = 0; h < rows; ++h, place += conv.stride * planes.row, column += width)
              visit(width, place, column);
          }
  });
}

void gather_columns(const Layout& layout, std::int64_t images, std::int64_t row, std::int64_t rows,
                    const Planes<const float>& planes, float* columns) {
  const std::int64_t stride = layout.conv.stride;
  if (stride == 1)
    visit_rows(layout, images, row, rows, planes, [&](auto width, const float* place, std::int64_t column) {
      std::copy_n(place, width, columns + column);
    });
  else
    visit_rows(layout, images, row, rows, planes, [&](auto width, const float* place, std::int64_t column) {
      for (std::int64_t t = 0; t < width; ++t) columns[column + t] = place[t * stride];
    });
}

void scatter_columns(const Layout& layout, std::int64_t images, std::int64_t row, std::int64_t rows,
                     const float* __restrict columns, const Planes<float>& planes) {
  const std::int64_t stride = layout.conv.stride;
  if (stride == 1)
    visit_rows(layout, images, row, rows, planes, [&](auto width, float* place, std::int64_t column) {
      for (std::int64_t t = 0; t < width; ++t) place[t] += columns[column + t];
    });
  else
    visit_rows(layout, images, row, rows, planes, [&](auto width, float* place, std::int64_t column) {
      for (std::int64_t t = 0; t < width; ++t) place[t * stride] += columns[column + t];
    });
}

// dy as [out][columns]: in place if the block is of one image, else gathered.
Matrix gather_results(const Layout& layout, std::int64_t images, std::int64_t row,
                      const Planes<const float>& dy, float* together) {
  if (layout.images == 1) return {dy.at(0, 0, row), layout.places};
  const std::int64_t columns = images * layout.places;
  with_width(layout.places, [&](auto places) {
    for (std::int64_t o = 0; o < layout.out; ++o)
      for (std::int64_t i = 0; i < images; ++i)
        std::copy_n(dy.at(i, o, 0), places, together + o * columns + i * places);
  });
  return {together, columns};
}

// Cuts images [begin, end) into blocks that do not depend on where the range begins. For each group
// of channels it calls
//
//   prepare(image, images, group), then run(image, images, group, row, rows) for the rows of positions that
//   make a block (all of them unless it has a single image), then finish(image, images, group)
template <class Prepare, class Run, class Finish>
void for_blocks(const Layout& layout, program::Range images_of, program::Range groups, Prepare prepare,
                Run run, Finish finish) {
  std::int64_t image = images_of.begin;
  while (image < images_of.end) {
    const std::int64_t images = std::min(images_of.end, (image / layout.images + 1) * layout.images) - image;
    for (std::int64_t group = groups.begin; group < groups.end; ++group) {
      prepare(image, images, group);
      for (std::int64_t row = 0; row < layout.conv.out_height; row += layout.rows)
        run(image, images, group, row, std::min(layout.rows, layout.conv.out_height - row));
      finish(image, images, group);
    }
    image += images;
  }
}

// The columns of x, block by block, for the forward pass and the weight gradient.
class Windows {
 public:
  Windows(const Layout& layout, const float* x, float* columns, float* border)
      : layout_(layout), x_(x), columns_(columns), border_(border) {}

  void prepare(std::int64_t image, std::int64_t images, std::int64_t group) {
    planes_ = layout_.inputs(x_, image, group);
    if (!layout_.border) return;
    const Planes<float> bordered = layout_.bordered(border_);
    add_border(layout_, images, planes_, bordered);
    planes_ = {bordered.data, bordered.image, bordered.channel, bordered.row};
  }

  Matrix columns(std::int64_t images, std::int64_t row, std::int64_t rows) const {
    if (layout_.plain) return {planes_.at(0, 0, row), planes_.channel};
    gather_columns(layout_, images, row, rows, planes_, columns_);
    return {columns_, images * rows * layout_.conv.out_width};
  }

 private:
  const Layout& layout_;
  const float* x_;
  float *columns_, *border_;
  Planes<const float> planes_ = {};
};

}  // namespace

std::size_t scratch_bytes(const Convolution& conv) {
  const Layout layout(conv);
  const auto product =
      static_cast<std::size_t>(layout.window_floats() + layout.result_floats() + layout.border_floats()) *
      sizeof(float);
  return slides(conv) ? std::max(product, direct_scratch_bytes(conv)) : product;
}

void convolve(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* x, const float* w,
              float* y, void* scratch) {
  if (slides(conv)) return direct_convolve(conv, begin, end, x, w, y, scratch);
  const Layout layout(conv);
  float* const columns = static_cast<float*>(scratch);
  float* const together = columns + layout.window_floats();
  Windows windows(layout, x, columns, together + layout.result_floats());
  for_blocks(
      layout, {begin, end}, {0, conv.groups},
      [&](std::int64_t image, std::int64_t images, std::int64_t group) {
        windows.prepare(image, images, group);
      },
      [&](std::int64_t image, std::int64_t images, std::int64_t group, std::int64_t row, std::int64_t rows) {
        const Matrix window = windows.columns(images, row, rows);
        const Planes<float> result = layout.results(y, image, group);
        const std::int64_t n = images * rows * conv.out_width;
        const bool alone = layout.images == 1;
        portable_gemm(Transpose::no, Transpose::no, layout.out, n, layout.depth, 1.0f,
                      w + group * layout.out * layout.depth, layout.depth, window.data, window.step, 0.0f,
                      alone ? result.at(0, 0, row) : together, alone ? layout.places : n);
        if (alone) return;
        with_width(layout.places, [&](auto places) {
          for (std::int64_t o = 0; o < layout.out; ++o)
            for (std::int64_t i = 0; i < images; ++i)
              std::copy_n(together + o * n + i * places, places, result.at(i, o, 0));
        });
      },
      [](std::int64_t, std::int64_t, std::int64_t) {});
}

void convolve_input_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                             const float* w, float* dx, void* scratch) {
  if (slides_back(conv)) return direct_input_gradient(conv, begin, end, dy, w, dx, scratch);
  const Layout layout(conv);
  float* const columns = static_cast<float*>(scratch);
  float* const together = columns + layout.window_floats();
  const Planes<float> bordered = layout.bordered(together + layout.result_floats());
  for_blocks(
      layout, {begin, end}, {0, conv.groups},
      [&](std::int64_t image, std::int64_t images, std::int64_t group) {
        if (layout.border) {
          std::fill_n(bordered.data, images * bordered.image, 0.0f);
        } else if (!layout.plain) {
          const Planes<float> planes = layout.inputs(dx, image, group);
          for (std::int64_t i = 0; i < images; ++i)
            std::fill_n(planes.at(i, 0, 0), layout.in * planes.channel, 0.0f);
        }
      },
      [&](std::int64_t image, std::int64_t images, std::int64_t group, std::int64_t row, std::int64_t rows) {
        const Planes<float> planes = layout.border ? bordered : layout.inputs(dx, image, group);
        const Matrix result = gather_results(layout, images, row, layout.results(dy, image, group), together);
        const std::int64_t n = images * rows * conv.out_width;
        portable_gemm(Transpose::yes, Transpose::no, layout.depth, n, layout.out, 1.0f,
                      w + group * layout.out * layout.depth, layout.depth, result.data, result.step, 0.0f,
                      layout.plain ? planes.at(0, 0, row) : columns, layout.plain ? planes.channel : n);
        if (!layout.plain) scatter_columns(layout, images, row, rows, columns, planes);
      },
      [&](std::int64_t image, std::int64_t images, std::int64_t group) {
        if (layout.border) remove_border(layout, images, bordered, layout.inputs(dx, image, group));
      });
}

void convolve_weight_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                              const float* x, float* dw, void* scratch) {
  if (slides_for_weights(conv)) return direct_weight_gradient(conv, begin, end, dy, x, dw, scratch);
  const std::int64_t channels = conv.in / conv.groups, window = conv.kernel_height * conv.kernel_width;
  // Whole groups are computed together; a partial first or last group is computed alone.
  while (begin < end) {
    const std::int64_t group = begin / channels, first = begin % channels;
    const std::int64_t count = std::min(channels - first, end - begin);
    const std::int64_t groups = first == 0 ? std::max<std::int64_t>((end - begin) / channels, 1) : 1;
    const Layout layout(conv, first, count);
    const std::int64_t depth = channels * window;  // row length of dw
    const auto gradient = [&](std::int64_t g) { return dw + g * layout.out * depth + first * window; };
    for (std::int64_t row = 0; row < groups * layout.out; ++row)
      std::fill_n(gradient(group) + row * depth, layout.depth, 0.0f);
    float* const columns = static_cast<float*>(scratch);
    float* const together = columns + layout.window_floats();
    Windows windows(layout, x, columns, together + layout.result_floats());
    for_blocks(
        layout, {0, conv.batch}, {group, group + groups},
        [&](std::int64_t image, std::int64_t images, std::int64_t g) { windows.prepare(image, images, g); },
        [&](std::int64_t image, std::int64_t images, std::int64_t g, std::int64_t row, std::int64_t rows) {
          const Matrix of_x = windows.columns(images, row, rows);
          const Matrix of_dy = gather_results(layout, images, row, layout.results(dy, image, g), together);
          portable_gemm(Transpose::no, Transpose::yes, layout.out, layout.depth,
                        images * rows * conv.out_width, 1.0f, of_dy.data, of_dy.step, of_x.data, of_x.step,
                        1.0f, gradient(g), depth);
        },
        [](std::int64_t, std::int64_t, std::int64_t) {});
    begin += groups * count;
  }
}

}  // namespace weft::device::cpu
