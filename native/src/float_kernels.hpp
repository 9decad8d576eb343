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
typedef uint32_t Bits __attribute__((vector_size(kWidth * sizeof(uint32_t))));
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
inline float largest(const float* __restrict values, const float* __restrict factors, size_t width,
                     bool magnitude) {
  // nonnegative floats have the order of their bits, and the bits of negative floats are below 0
  const int32_t kept = magnitude ? std::numeric_limits<int32_t>::max() : -1;
  int32_t most = 0;
  for (size_t k = 0; k < width; ++k) {
    const float value = values[k] * factors[k];
    // NaN may have a sign
    most = std::max(most, value != value ? std::numeric_limits<int32_t>::max()
                                         : std::bit_cast<int32_t>(value) & kept);
  }
  return std::bit_cast<float>(most);
}

// The sum of a rounded value and `Shift` is a byte for the products of this instruction set.
template <int Shift>
float round_row(const float* __restrict values, const float* __restrict factors, size_t width,
                int zero_point, uint8_t* __restrict rounded) {
  constexpr float kLeastGelu = 0.171f;  // GELU is above -0.171
  const bool magnitude = zero_point == 128;
  const float steps = magnitude ? 127.0f : static_cast<float>(255 - zero_point);
  const float least = magnitude ? 1e-36f : kLeastGelu / static_cast<float>(zero_point) * steps;
  float bound = largest(values, factors, width, magnitude);
  // A row of tiny numbers or zeros has scale 0, because its inverse may be infinite. In a row with
  // NaN, all products are NaN.
  if (bound < least) bound = magnitude ? 0.0f : least;
  const float inverse = bound == 0.0f ? 0.0f : steps / bound;
  const int32_t zero = std::bit_cast<int32_t>(kRoundToInteger) - zero_point;
  for (size_t k = 0; k < width; ++k) {
    const float value = values[k] * factors[k] * inverse + kRoundToInteger;
    const int32_t byte = std::min(std::max(std::bit_cast<int32_t>(value), zero) - zero, 255);
    rounded[k] = static_cast<uint8_t>(byte + Shift);
  }
  return bound / steps;
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
  constexpr float kP[] = {0.13594998f,   -0.06774361f,   0.050025396f,  -0.03993221f,
                          0.03197765f,   -0.024698721f,  0.01801641f,   -0.012611455f,
                          0.008423584f,  -0.0045757974f, 0.0019366364f, -0.0014212157f,
                          0.0012181122f, -0.00041094507f};
  const Floats t = clamp(x, kEnd);
  return x * (t * polynomial(kP, t * t * (2.0f / (kEnd * kEnd)) - 1.0f) + 0.5f);
}

// Computes exp(x) to a relative error of 2e-7 for x from -87 to 87, as a power of two times a
// polynomial. Other numbers have the result of the nearest of the two.
inline Floats exponential(Floats x) {
  constexpr float kEnd = 87.0f, kLog2E = 1.442695f;
  constexpr float kP[] = {1.0f,         0.6931472f,    0.24022652f,   0.05550327f,
                          0.009617995f, 0.0013400431f, 0.00015478022f};
  const Floats y = clamp(x, kEnd) * kLog2E;
  const Integers whole = (Integers)(y + kRoundToInteger) - (Integers)(Floats{} + kRoundToInteger);
  const Floats part = polynomial(kP, y - __builtin_convertvector(whole, Floats));
  return (Floats)((Bits)part + ((Bits)whole << 23));  // unsigned, because of NaN
}

inline Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }

inline Floats gelu_tanh(Floats x) {
  constexpr float kTwiceRoot2OverPi = 1.5957692f;
  return x * sigmoid(kTwiceRoot2OverPi * (0.044715f * x * x * x + x));
}

inline Floats silu(Floats x) { return x * sigmoid(x); }

template <Floats (*Activate)(Floats)>
void finish(const PanelEnd& panel, const int32_t* sums, size_t count, const float* row_scales,
            const float* floats, const float* residual, float* outputs, size_t stride) {
  for (size_t r = 0; r < count; ++r) {
    float* to = outputs + r * stride;
    for (size_t c = 0; c < panel.columns; c += kWidth) {
      const float* constants = panel.constants + c;
      const auto total = load<Integers>(sums + r * kPanelColumns + c);
      const Floats products = __builtin_convertvector(total, Floats) * load<Floats>(constants);
      Floats y = products * row_scales[r] + load<Floats>(constants += kPanelColumns);
      for (size_t f = 0; f < panel.float_channels; ++f) {
        y += floats[r * panel.float_channels + f] * load<Floats>(constants += kPanelColumns);
      }
      y = Activate(y);
      const auto end = [&](auto width) {
        if (residual) y += load<Floats>(residual + r * stride + c, width);
        store(to + c, y, width);
      };
      if (const size_t left = panel.columns - c; left < kWidth) {
        end(left);
      } else {
        end(std::integral_constant<size_t, kWidth>());  // one instruction each
      }
    }
  }
}

// By activation.
constexpr Finish kFinish[] = {finish<same>, finish<gelu_erf>, finish<gelu_tanh>, finish<silu>};

// Computes `c = a @ b` for at most kTileRows rows of `a`, and Vectors * 16 columns. The numbers of
// a row of `a` have the distance `a_step`.
template <size_t Vectors>
void multiply_floats(const float* a, size_t a_stride, size_t a_step, size_t count, const float* b,
                     size_t b_stride, size_t depth, float* c, size_t c_stride) {
  const float* rows[kTileRows];  // the last row again in place of missing ones
  for (size_t r = 0; r < kTileRows; ++r) rows[r] = a + std::min(r, count - 1) * a_stride;
  Floats sums[kTileRows][Vectors] = {};
  for (size_t k = 0; k < depth; ++k) {
    Floats row[Vectors];
#pragma GCC unroll 2
    for (size_t v = 0; v < Vectors; ++v) row[v] = load<Floats>(b + k * b_stride + v * kWidth);
#pragma GCC unroll 6
    for (size_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (size_t v = 0; v < Vectors; ++v) sums[r][v] += rows[r][k * a_step] * row[v];
    }
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kTileRows; ++r) {
    if (r >= count) break;
#pragma GCC unroll 2
    for (size_t v = 0; v < Vectors; ++v) store(c + r * c_stride + v * kWidth, sums[r][v]);
  }
}

// Transposes a matrix: four times, interleaves the numbers of each row and the row 8 below it.
inline void transpose(Floats (&rows)[kWidth]) {
  for (int time = 0; time < 4; ++time) {
    Floats next[kWidth];
#pragma GCC unroll 8
    for (size_t r = 0; r < kWidth / 2; ++r) {
      const Floats a = rows[r], b = rows[r + kWidth / 2];
      next[2 * r] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * r + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
    std::copy_n(next, kWidth, rows);
  }
}

// Turns the scores of 16 queries, a column each, into attention weights.
inline void softmax(float* scores, size_t tokens) {
  auto most = load<Floats>(scores);
  for (size_t t = 1; t < tokens; ++t) {
    const auto score = load<Floats>(scores + t * Head::kQueries);
    most = score > most ? score : most;
  }
  Floats sums = {};
  for (size_t t = 0; t < tokens; ++t) {
    const auto weight = exponential(load<Floats>(scores + t * Head::kQueries) - most);
    sums += weight;
    store(scores + t * Head::kQueries, weight);
  }
  const Floats inverse = 1.0f / sums;
  for (float* weights = scores; weights < scores + tokens * Head::kQueries;
       weights += Head::kQueries) {
    store(weights, load<Floats>(weights) * inverse);
  }
}

void attend(const Head& head) {
  constexpr size_t kQueries = Head::kQueries;
  static_assert(kQueries == 2 * kWidth);
  const size_t width = head.width, stride = head.stride;
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  float* queries = head.scratch;               // (width, kQueries)
  float* scores = queries + width * kQueries;  // (tokens, kQueries)
  for (size_t first = 0; first < head.query_count; first += kQueries) {
    const size_t count = std::min(kQueries, head.query_count - first);
    const auto multiply_queries = count > kWidth ? multiply_floats<2> : multiply_floats<1>;
    for (size_t q = 0; q < count; q += kWidth) {
      for (size_t k = 0; k < width; k += kWidth) {
        Floats tile[kWidth];
        for (size_t r = 0; r < kWidth; ++r) {  // the last query again in place of missing ones
          const size_t query = first + std::min(q + r, count - 1);
          tile[r] = load<Floats>(head.queries + query * stride + k) * scale;
        }
        transpose(tile);
        for (size_t r = 0; r < kWidth; ++r) store(queries + (k + r) * kQueries + q, tile[r]);
      }
    }
    for (size_t t = 0; t < head.tokens; t += kTileRows) {
      multiply_queries(head.keys + t * stride, stride, 1, std::min(kTileRows, head.tokens - t),
                       queries, kQueries, width, scores + t * kQueries, kQueries);
    }
    for (size_t q = 0; q < count; q += kWidth) softmax(scores + q, head.tokens);
    for (size_t q = 0; q < count; q += kTileRows) {
      float* outputs = head.outputs + (first + q) * stride;
      for (size_t k = 0; k < width; k += 2 * kWidth) {
        const auto multiply = width - k >= 2 * kWidth ? multiply_floats<2> : multiply_floats<1>;
        multiply(scores + q, 1, kQueries, std::min(kTileRows, count - q), head.values + k, stride,
                 head.tokens, outputs + k, stride);
      }
    }
  }
}

}  // namespace
}  // namespace fillmask
