// Rounding of rows and the float32 end of a layer, in the vectors of GCC and clang, which exist for
// every CPU. Each instruction set includes this file in a source file with its own compiler
// options, so everything here is local to that source file.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.hpp"

namespace fillmask {
namespace {

constexpr size_t kWidth = 16;
typedef float Floats __attribute__((vector_size(kWidth * sizeof(float))));
typedef int32_t Integers __attribute__((vector_size(kWidth * sizeof(int32_t))));
static_assert(kPanelColumns % kWidth == 0);

template <typename Vector, typename Number>
inline Vector load(const Number* from, size_t count = kWidth) {
  Vector vector = {};
  std::memcpy(&vector, from, count * sizeof(Number));
  return vector;
}

template <typename Vector, typename Number>
inline void store(Number* to, const Vector& vector, size_t count = kWidth) {
  std::memcpy(to, &vector, count * sizeof(Number));
}

// 1.5 * 2^23: adding it moves the integer part of a number into the last bits, rounded to even.
constexpr float kRoundToInteger = 12582912.0f;

// Returns the largest value of a row, or its largest magnitude. NaN counts as the largest value.
template <bool Scaled>
float largest(const float* __restrict values, const float* __restrict factors, size_t width,
              bool magnitude) {
  // nonnegative floats have the order of their bits, and the bits of negative floats are below 0
  const int32_t kept = magnitude ? std::numeric_limits<int32_t>::max() : -1;
  int32_t most = 0;
  for (size_t k = 0; k < width; ++k) {
    const float value = Scaled ? values[k] * factors[k] : values[k];
    // NaN may have a sign
    most = std::max(most, value != value ? std::numeric_limits<int32_t>::max()
                                         : std::bit_cast<int32_t>(value) & kept);
  }
  return std::bit_cast<float>(most);
}

template <bool Scaled>
void round_values(const float* __restrict values, const float* __restrict factors, size_t width,
                  float inverse, int zero_point, int shift, uint8_t* __restrict rounded) {
  const int32_t zero = std::bit_cast<int32_t>(kRoundToInteger) - zero_point;
  for (size_t k = 0; k < width; ++k) {
    const float value = (Scaled ? values[k] * factors[k] : values[k]) * inverse + kRoundToInteger;
    const int32_t byte = std::min(std::max(std::bit_cast<int32_t>(value), zero) - zero, 255);
    rounded[k] = static_cast<uint8_t>(byte + shift);
  }
}

// The sum of a rounded value and `Shift` is a byte for the products of this instruction set.
template <bool Scaled, int Shift>
float round_scaled(const RowToRound& row, uint8_t* rounded) {
  constexpr float kLeastGelu = 0.171f;  // GELU is above -0.171
  const bool magnitude = row.zero_point == 128;
  const float steps = magnitude ? 127.0f : static_cast<float>(255 - row.zero_point);
  const float least = magnitude ? 1e-36f : kLeastGelu / static_cast<float>(row.zero_point) * steps;
  float bound = largest<Scaled>(row.values, row.factors, row.width, magnitude);
  // A row of tiny numbers or zeros has scale 0, because its inverse may be infinite. In a row with
  // NaN, all products are NaN.
  if (bound < least) bound = magnitude ? 0.0f : least;
  const float inverse = bound == 0.0f ? 0.0f : steps / bound;
  round_values<Scaled>(row.values, row.factors, row.width, inverse, row.zero_point, Shift, rounded);
  return bound / steps;
}

template <int Shift>
float round_row(const RowToRound& row, uint8_t* rounded) {
  return row.factors ? round_scaled<true, Shift>(row, rounded)
                     : round_scaled<false, Shift>(row, rounded);
}

// Computes the sum of coefficients[i] * x^i.
template <size_t Count>
inline Floats polynomial(const float (&coefficients)[Count], Floats x) {
  Floats sum = Floats{} + coefficients[Count - 1];
#pragma GCC unroll 16
  for (size_t i = 1; i < Count; ++i) sum = sum * x + coefficients[Count - 1 - i];
  return sum;
}

inline Floats clamp(Floats x, float end) {
  x = x < -end ? Floats{} - end : x;
  return x > end ? Floats{} + end : x;
}

inline Floats same(Floats x) { return x; }

// GELU(x) = x * (1/2 + x * P(x^2)) with an error below 1e-6 near zero and 2e-7 * |x| elsewhere. P
// is a minimax polynomial on [0, 5.2^2], in a variable from -1 to 1.
inline Floats gelu_erf(Floats x) {
  constexpr float kEnd = 5.2f;
  constexpr float kP[] = {0.1359499841928482f,    -0.06774360686540604f,  0.050025396049022675f,
                          -0.03993220999836922f,  0.03197764977812767f,   -0.02469872124493122f,
                          0.018016409128904343f,  -0.012611455284059048f, 0.008423583582043648f,
                          -0.004575797356665134f, 0.0019366363994777203f, -0.0014212157111614943f,
                          0.0012181121855974197f, -0.0004109450674150139f};
  const Floats t = clamp(x, kEnd);
  return x * (t * polynomial(kP, t * t * (2.0f / (kEnd * kEnd)) - 1.0f) + 0.5f);
}

// Computes exp(x) to a relative error of 2e-7 for x from -87 to 87, as a power of two times a
// polynomial. Other numbers have the result of the nearest of the two.
inline Floats exponential(Floats x) {
  constexpr float kEnd = 87.0f, kLog2E = 1.4426950408889634f;
  constexpr float kP[] = {1.0f,
                          0.6931471824645996f,
                          0.24022652208805084f,
                          0.05550327152013779f,
                          0.009617994539439678f,
                          0.001340043148957193f,
                          0.00015478022396564484f};
  const Floats y = clamp(x, kEnd) * kLog2E;
  const Integers whole = (Integers)(y + kRoundToInteger) - (Integers)(Floats{} + kRoundToInteger);
  const Floats part = polynomial(kP, y - __builtin_convertvector(whole, Floats));
  return (Floats)((Integers)part + whole * (1 << 23));
}

inline Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }

inline Floats gelu_tanh(Floats x) {
  constexpr float kTwiceRoot2OverPi = 1.5957691216057308f;
  return x * sigmoid(kTwiceRoot2OverPi * (0.044715f * x * x * x + x));
}

inline Floats silu(Floats x) { return x * sigmoid(x); }

template <Floats (*Activate)(Floats)>
void finish_with(const PanelEnd& panel, const int32_t* sums, size_t count, const float* row_scales,
                 const float* floats, const float* residual, float* outputs, size_t stride) {
  for (size_t r = 0; r < count; ++r) {
    float* to = outputs + r * stride;
    for (size_t c = 0; c < panel.columns; c += kWidth) {
      const auto total = load<Integers>(sums + r * kPanelColumns + c);
      const Floats products =
          __builtin_convertvector(total, Floats) * load<Floats>(panel.scales + c);
      Floats y = products * row_scales[r] + load<Floats>(panel.bias + c);
      for (size_t f = 0; f < panel.float_channels; ++f) {
        y += floats[r * panel.float_channels + f] *
             load<Floats>(panel.float_weights + f * kPanelColumns + c);
      }
      y = Activate(y);
      const size_t left = panel.columns - c;
      if (left >= kWidth) {
        if (residual) y += load<Floats>(residual + r * stride + c);
        store(to + c, y);
      } else {
        if (residual) y += load<Floats>(residual + r * stride + c, left);
        store(to + c, y, left);
      }
    }
  }
}

void finish(const PanelEnd& panel, const int32_t* sums, size_t count, const float* row_scales,
            const float* floats, const float* residual, float* outputs, size_t stride) {
  constexpr decltype(&finish) kByActivation[] = {finish_with<same>, finish_with<gelu_erf>,
                                                 finish_with<gelu_tanh>, finish_with<silu>};
  kByActivation[static_cast<size_t>(panel.activation)](panel, sums, count, row_scales, floats,
                                                       residual, outputs, stride);
}

// Computes `c = a @ b` for kTileRows rows of `a` with `depth` columns, and Vectors * 16 columns.
template <size_t Vectors>
void multiply_floats(const float* a, size_t a_stride, const float* b, size_t b_stride, size_t depth,
                     float* c, size_t c_stride) {
  Floats sums[kTileRows][Vectors] = {};
  for (size_t k = 0; k < depth; ++k) {
    Floats row[Vectors];
#pragma GCC unroll 2
    for (size_t v = 0; v < Vectors; ++v) row[v] = load<Floats>(b + k * b_stride + v * kWidth);
#pragma GCC unroll 6
    for (size_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (size_t v = 0; v < Vectors; ++v) sums[r][v] += a[r * a_stride + k] * row[v];
    }
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
    for (size_t v = 0; v < Vectors; ++v) store(c + r * c_stride + v * kWidth, sums[r][v]);
  }
}

inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }

// Combines the numbers of a vector in pairs, with a function of two vectors.
template <typename Function>
inline float reduce(Floats x, const Function& function) {
  x = function(x,
               __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  x = function(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
  x = function(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1));
  return function(x,
                  __builtin_shufflevector(x, x, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0))[0];
}

// Turns scores into attention weights, with zeros after the tokens.
inline void softmax(float* scores, size_t tokens, size_t padded) {
  constexpr Integers kLanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (size_t j = tokens / kWidth * kWidth; j < padded; j += kWidth) {
    const Integers left = Integers{} + static_cast<int32_t>(tokens - std::min(j, tokens));
    const auto never = Floats{} - std::numeric_limits<float>::infinity();
    store(scores + j, kLanes < left ? load<Floats>(scores + j) : never);
  }
  auto most = load<Floats>(scores);
  for (size_t j = kWidth; j < padded; j += kWidth) most = larger(most, load<Floats>(scores + j));
  const float largest = reduce(most, larger);
  Floats sums = {};
  for (size_t j = 0; j < padded; j += kWidth) {
    const Floats weights = exponential(load<Floats>(scores + j) - largest);
    sums += weights;
    store(scores + j, weights);
  }
  const float inverse = 1.0f / reduce(sums, [](Floats a, Floats b) { return a + b; });
  for (size_t j = 0; j < padded; j += kWidth) store(scores + j, load<Floats>(scores + j) * inverse);
}

void attend(const Head& head) {
  constexpr size_t kColumns = 2 * kWidth;
  const size_t padded = Head::padded(head.tokens), width = head.width, stride = head.stride;
  float* keys = head.scratch;  // (width, padded), transposed
  float* scores = keys + width * padded;
  float* queries = scores + kTileRows * padded;
  for (size_t j = 0; j < head.tokens; ++j) {
    const float* __restrict key = head.keys + j * stride;
    for (size_t k = 0; k < width; ++k) keys[k * padded + j] = key[k];
  }
  for (size_t k = 0; k < width; ++k) {
    std::fill(keys + k * padded + head.tokens, keys + (k + 1) * padded, 0.0f);
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  for (size_t first = 0; first < head.query_count; first += kTileRows) {
    const size_t count = std::min(kTileRows, head.query_count - first);
    for (size_t r = 0; r < kTileRows; ++r) {  // the last query again in place of missing ones
      const float* query = head.queries + (first + std::min(r, count - 1)) * stride;
      for (size_t k = 0; k < width; ++k) queries[r * width + k] = query[k] * scale;
    }
    for (size_t j = 0; j < padded; j += kColumns) {
      multiply_floats<2>(queries, width, keys + j, padded, width, scores + j, padded);
    }
    for (size_t r = 0; r < count; ++r) softmax(scores + r * padded, head.tokens, padded);
    for (size_t k = 0; k < width; k += kColumns) {
      const auto multiply = width - k >= kColumns ? multiply_floats<2> : multiply_floats<1>;
      multiply(scores, padded, head.values + k, stride, head.tokens, queries + k, width);
    }
    for (size_t r = 0; r < count; ++r) {
      std::copy_n(queries + r * width, width, head.outputs + (first + r) * stride);
    }
  }
}

}  // namespace
}  // namespace fillmask
