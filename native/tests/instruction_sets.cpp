// Compares the kernels of each instruction set of this CPU with plain loops. Integers must be
// equal, floats must be close. Prints the names of the instruction sets, or the first difference.
//
// All arrays have exactly the required size, so that AddressSanitizer finds reads and writes
// outside.
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "../src/kernels.hpp"
#include "../src/linear_layer.hpp"

namespace fillmask {
namespace {

constexpr float kUntouched = -12345.0f;
constexpr double kTolerance = 2e-6;  // relative to the largest term

std::mt19937 generator(0);

int random_integer(int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(generator);
}

float random_float(float size = 1) {
  return std::uniform_real_distribution<float>(-size, size)(generator);
}

std::vector<float> random_floats(size_t count, float size = 1) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = random_float(size);
  return numbers;
}

template <typename T>
std::vector<T> random_integers(size_t count) {
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    number = static_cast<T>(
        random_integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  return numbers;
}

// Bytes whose address is a multiple of kAlignment, as panels have it.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t count)
      : bytes_(static_cast<int8_t*>(std::aligned_alloc(kAlignment, count))) {}
  AlignedBytes(const AlignedBytes&) = delete;
  ~AlignedBytes() { std::free(bytes_); }
  int8_t* get() const { return bytes_; }

 private:
  int8_t* bytes_;
};

[[noreturn]] void fail(const std::string& what, double found, double expected) {
  std::printf("%s: %.9g must be %.9g\n", what.c_str(), found, expected);
  std::exit(1);
}

void check_equal(const std::string& what, double found, double expected) {
  if (found != expected) fail(what, found, expected);
}

void check_close(const std::string& what, double found, double expected, double largest_term) {
  if (!(std::abs(found - expected) <= kTolerance * largest_term)) fail(what, found, expected);
}

double activate(double x, Activation activation) {
  switch (activation) {
    case Activation::gelu_erf:
      return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
    case Activation::gelu_tanh:
      return x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))) / 2;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    default:
      return x;
  }
}

// x86 without FMA, which computes float32 products before it adds.
bool rounds_products([[maybe_unused]] const InstructionSet& kernels) {
#if defined(__x86_64__) && !defined(__FMA__)
  return &kernels == &kPortable;
#else
  return false;
#endif
}

void check_rounding(const InstructionSet& kernels, const std::vector<float>& values,
                    const std::vector<float>& factors, int zero_point) {
  const size_t width = values.size();
  std::vector<float> scaled = values;
  float bound = 0;
  for (size_t k = 0; k < width; ++k) {
    scaled[k] *= factors[k];
    bound = std::max(bound, zero_point == 128 ? std::abs(scaled[k]) : scaled[k]);
  }
  const float steps = zero_point == 128 ? 127.0f : 255.0f - static_cast<float>(zero_point);
  if (zero_point != 128) bound = std::max(bound, 0.171f / static_cast<float>(zero_point) * steps);
  if (bound < 1e-36f) bound = 0;
  const float inverse = bound == 0 ? 0 : steps / bound;

  std::vector<uint8_t> rounded((width + kernels.group - 1) / kernels.group * kernels.group);
  const float scale =
      kernels.round_row(values.data(), factors.data(), width, zero_point, rounded.data());
  const std::string name = std::string(kernels.name) + " rounding ";
  check_equal(name + "scale", scale, bound / steps);
  for (size_t k = 0; k < width; ++k) {
    double product = static_cast<double>(scaled[k]) * inverse;
    if (rounds_products(kernels)) product = static_cast<float>(product);
    const double byte = std::fmin(std::fmax(std::nearbyint(product) + zero_point, 0), 255);
    check_equal(name + std::to_string(k) + " of " + std::to_string(width),
                static_cast<uint8_t>(rounded[k] - kernels.shift), byte);
  }
}

void check_rounding(const InstructionSet& kernels) {
  for (const int zero_point : {128, 16}) {
    for (size_t width = 1; width <= 150; ++width) {
      for (const float size : {0.0f, 1e-40f, 3e-37f, 1e-3f, 1.0f, 40.0f, 1e6f, 1e38f}) {
        auto values = random_floats(width, size);
        const std::vector<float> ones(width, 1.0f);
        check_rounding(kernels, values, ones, zero_point);
        check_rounding(kernels, values, random_floats(width, 0.9f), zero_point);
        values[width / 2] = 0.1f;  // so that others are far below zero
        check_rounding(kernels, values, ones, zero_point);
      }
    }
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> values = random_floats(33), ones(33, 1.0f);
      values[20] = std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
      std::vector<uint8_t> rounded(40);
      const float scale =
          kernels.round_row(values.data(), ones.data(), 33, zero_point, rounded.data());
      if (!std::isnan(scale)) fail(std::string(kernels.name) + " scale of NaN", scale, values[20]);
    }
  }
}

void check_products(const InstructionSet& kernels, size_t count, size_t groups, int byte,
                    int weight) {
  const size_t inputs = groups * kernels.group, stride = inputs + 8 * (groups % 2);
  auto rows = random_integers<uint8_t>(stride * (count - 1) + inputs);
  const auto start = random_integers<int32_t>(kPanelColumns);
  auto begin = start;
  for (int32_t& one : begin) one >>= 8;
  const AlignedBytes panel(inputs * kPanelColumns);
  for (size_t i = 0; i < inputs * kPanelColumns; ++i) {
    panel.get()[i] = static_cast<int8_t>(weight ? weight : random_integer(-128, 127));
  }
  if (byte) std::memset(rows.data(), byte + kernels.shift, rows.size());
  std::vector<int32_t> sums(kTileRows * kPanelColumns);
  kernels.multiply(rows.data(), stride, count, panel.get(), groups, begin.data(), sums.data());
  for (size_t r = 0; r < count; ++r) {
    for (size_t c = 0; c < kPanelColumns; ++c) {
      int64_t sum = begin[c];
      for (size_t k = 0; k < inputs; ++k) {
        const uint8_t value = rows[r * stride + k];
        const size_t place = (k / kernels.group * kPanelColumns + c) * kernels.group;
        sum += (kernels.shift ? static_cast<int8_t>(value) : value) *
               panel.get()[place + k % kernels.group];
      }
      check_equal(std::string(kernels.name) + " product of row " + std::to_string(r) + " of " +
                      std::to_string(count) + ", " + std::to_string(groups) + " groups",
                  sums[r * kPanelColumns + c], static_cast<double>(sum));
    }
  }
}

void check_products(const InstructionSet& kernels) {
  for (size_t count = 1; count <= kTileRows; ++count) {
    for (size_t groups = 0; groups <= 40; ++groups) check_products(kernels, count, groups, 0, 0);
    for (const int weight : {-128, 127}) {
      for (const int byte : {1, 255}) check_products(kernels, count, 300, byte, weight);
    }
  }
  check_products(kernels, 1, 65536 / kernels.group - 1, 255, -128);
}

struct End {
  size_t count, columns, channels;
  Activation activation;
  bool residual;
};

// Returns the outputs, for comparison with those of other instruction sets.
std::vector<float> check_end(const InstructionSet& kernels, const End& end) {
  const size_t stride = end.columns + end.count % 3;
  const size_t size = stride * (end.count - 1) + end.columns;
  std::vector<int32_t> sums(end.count * kPanelColumns);
  for (int32_t& sum : sums) sum = random_integer(-2000000, 2000000);
  auto constants = random_floats((2 + end.channels) * kPanelColumns);
  const float *bias = constants.data() + kPanelColumns, *weights = bias + kPanelColumns;
  for (size_t c = 0; c < kPanelColumns; ++c) constants[c] *= 1e-3f;
  const auto row_scales = random_floats(end.count, 1e-2f);
  const auto floats = random_floats(end.channels * end.count), residual = random_floats(size, 3);
  std::vector<float> outputs(size, kUntouched);
  kernels.finish[static_cast<size_t>(end.activation)](
      {constants.data(), end.channels, end.columns}, sums.data(), end.count, row_scales.data(),
      floats.data(), end.residual ? residual.data() : nullptr, outputs.data(), stride);
  const std::string name = std::string(kernels.name) + " end with activation " +
                           std::to_string(static_cast<int>(end.activation)) + ", " +
                           std::to_string(end.columns) + " columns";
  for (size_t place = 0; place < size; ++place) {
    const size_t r = place / stride, c = place % stride;
    if (c >= end.columns) {
      check_equal(name + ", untouched", outputs[place], kUntouched);
      continue;
    }
    double y = static_cast<double>(sums[r * kPanelColumns + c]) * constants[c] * row_scales[r];
    double largest = std::abs(y) + std::abs(bias[c]);
    y += bias[c];
    for (size_t f = 0; f < end.channels; ++f) {
      const double term =
          static_cast<double>(floats[r * end.channels + f]) * weights[f * kPanelColumns + c];
      y += term;
      largest += std::abs(term);
    }
    y = activate(y, end.activation);
    if (end.residual) y += residual[place];
    if (end.residual) largest += std::abs(residual[place]);
    check_close(name, outputs[place], y, largest);
  }
  return outputs;
}

// Returns the outputs, for comparison with those of other instruction sets.
std::vector<float> check_attention(const InstructionSet& kernels, size_t queries, size_t tokens,
                                   size_t width, float size) {
  const size_t stride = width + width * (queries % 2);
  const auto query = random_floats((queries - 1) * stride + width, size);
  const auto key = random_floats((tokens - 1) * stride + width);
  const auto value = random_floats((tokens - 1) * stride + width);
  std::vector<float> outputs(query.size(), kUntouched), scratch(Head::scratch_size(width, tokens));
  kernels.attend({query.data(), key.data(), value.data(), queries, tokens, width, stride,
                  scratch.data(), outputs.data()});
  const std::string name = std::string(kernels.name) + " attention of " + std::to_string(queries) +
                           " queries to " + std::to_string(tokens) + " tokens, width " +
                           std::to_string(width);
  std::vector<double> scores(tokens);
  for (size_t q = 0; q < queries; ++q) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t t = 0; t < tokens; ++t) {
      scores[t] = 0;
      for (size_t k = 0; k < width; ++k) {
        scores[t] += static_cast<double>(query[q * stride + k]) * key[t * stride + k];
      }
      scores[t] /= std::sqrt(static_cast<double>(width));
      largest = std::max(largest, scores[t]);
    }
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (size_t k = 0; k < stride && q * stride + k < outputs.size(); ++k) {
      const float output = outputs[q * stride + k];
      if (k >= width) {
        check_equal(name + ", untouched", output, kUntouched);
        continue;
      }
      double expected = 0;
      for (size_t t = 0; t < tokens; ++t) expected += scores[t] / sum * value[t * stride + k];
      // an error of a score is an error of the exponent of its weight
      check_close(name, output, expected, std::max(1.0f, size));
    }
  }
  return outputs;
}

// A NaN must reach the outputs of its row, and no others.
void check_nan(const InstructionSet& kernels) {
  const std::string name = std::string(kernels.name) + " NaN";
  const auto check = [&](float output, bool is_bad) {
    if (std::isnan(output) != is_bad) fail(name, output, is_bad ? std::nan("") : 0);
  };
  for (const float sign : {1.0f, -1.0f}) {
    const float nan = std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
    auto constants = random_floats(2 * kPanelColumns);
    constants[kPanelColumns + 7] = nan;
    const std::vector<int32_t> sums(kPanelColumns);
    for (int activation = 0; activation < 4; ++activation) {
      std::vector<float> outputs(kPanelColumns);
      const float scale = 1;
      kernels.finish[activation]({constants.data(), 0, kPanelColumns}, sums.data(), 1, &scale,
                                 nullptr, nullptr, outputs.data(), kPanelColumns);
      for (size_t c = 0; c < kPanelColumns; ++c) check(outputs[c], c == 7);
    }
    const size_t tokens = 40, width = 16;
    auto queries = random_floats(tokens * width);
    queries[20 * width + 3] = nan;
    const auto keys = random_floats(tokens * width);
    std::vector<float> scratch(Head::scratch_size(width, tokens)), outputs(tokens * width);
    kernels.attend({queries.data(), keys.data(), keys.data(), tokens, tokens, width, width,
                    scratch.data(), outputs.data()});
    for (size_t i = 0; i < outputs.size(); ++i) check(outputs[i], i / width == 20);
  }
}

// Checks all floats, and returns those of the outputs.
std::vector<float> check_floats(const InstructionSet& kernels) {
  generator.seed(1);
  std::vector<float> all;
  const auto append = [&](const std::vector<float>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (size_t count = 1; count <= kTileRows; ++count) {
    for (size_t columns = 1; columns <= kPanelColumns; ++columns) {
      for (const int activation : {0, 1, 2, 3}) {
        const bool residual = (count + columns + activation) % 2;
        append(check_end(
            kernels, {count, columns, columns % 4, static_cast<Activation>(activation), residual}));
      }
    }
  }
  for (const size_t width : {16, 32, 48, 64, 80}) {
    for (size_t tokens = 1; tokens <= 70; ++tokens) {
      append(check_attention(kernels, 1 + tokens % 14, tokens, width, 1));
    }
    for (const float size : {1e-20f, 30.0f, 1e4f}) {
      append(check_attention(kernels, 7, 200, width, size));
    }
  }
  return all;
}

void check_layer(const InstructionSet& kernels, size_t rows, size_t inputs, size_t outputs,
                 int zero_point, bool transposed) {
  const size_t channels = rows % 3;
  const auto weights = random_integers<int8_t>(inputs * outputs);
  const auto scales = random_floats(outputs, 1e-2f), bias = random_floats(outputs);
  const auto float_weights = random_floats(outputs * channels),
             floats = random_floats(rows * channels);
  const auto residual = random_floats(rows * outputs);
  const LinearLayer layer({weights.data(), transposed, inputs, outputs, scales.data(),
                           rows % 2 ? bias.data() : nullptr, float_weights.data(), channels,
                           Activation::silu, zero_point});
  const size_t stride = (inputs + kernels.group - 1) / kernels.group * kernels.group;
  const auto bytes = random_integers<uint8_t>(rows * stride);  // in the padding too
  const auto row_scales = random_floats(rows, 1e-2f);
  std::vector<float> y(rows * outputs, kUntouched);
  const size_t middle = rows / 2;
  for (size_t panel = 0; panel < layer.panels(); ++panel) {
    const RoundedRows input = {bytes.data(), stride, row_scales.data(), floats.data(),
                               residual.data()};
    layer.compute(input, panel, 0, middle, y.data());
    layer.compute(input, panel, middle, rows, y.data());
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t n = 0; n < outputs; ++n) {
      int64_t sum = 0;
      for (size_t k = 0; k < inputs; ++k) {
        const auto value = static_cast<uint8_t>(bytes[r * stride + k] - kernels.shift);
        sum += (value - zero_point) * weights[transposed ? n * inputs + k : k * outputs + n];
      }
      double expected = static_cast<double>(sum) * scales[n] * row_scales[r];
      double largest = std::abs(expected) + 1;
      if (rows % 2) expected += bias[n];
      for (size_t f = 0; f < channels; ++f) {
        expected += static_cast<double>(floats[r * channels + f]) * float_weights[n * channels + f];
        largest += 1;
      }
      expected = activate(expected, Activation::silu) + residual[r * outputs + n];
      check_close(std::string(kernels.name) + " layer of " + std::to_string(inputs) + " inputs, " +
                      std::to_string(outputs) + " outputs, " + std::to_string(rows) + " rows",
                  y[r * outputs + n], expected, largest);
    }
  }
}

void check_layers(const InstructionSet& kernels) {
  for (size_t rows = 1; rows <= 64; ++rows) {
    check_layer(kernels, rows, 17, 65, rows % 3 ? 128 : 16, rows % 2);
  }
  for (const size_t rows : {1, 5, 6, 7, 13}) {
    for (const size_t inputs : {1, 3, 4, 5, 8, 9, 16, 65}) {
      for (const size_t outputs : {1, 15, 16, 63, 64, 65, 129}) {
        for (const int zero_point : {128, 16}) {
          check_layer(kernels, rows, inputs, outputs, zero_point, false);
          check_layer(kernels, rows, inputs, outputs, zero_point, true);
        }
      }
    }
  }
}

std::vector<const InstructionSet*> instruction_sets() {
  std::vector<const InstructionSet*> found = {&kPortable};
#if defined(__x86_64__)
  uint32_t a, b, c, d;
  // AVX512 F, DQ, BW and VL, then VNNI. Systems of today save the registers of AVX512.
  constexpr uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, kVnni = 1u << 11;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kAvx512) == kAvx512 && (c & kVnni)) {
    found.push_back(&kAvx512Vnni);
  }
#elif defined(__aarch64__) && defined(__linux__)
  if (getauxval(AT_HWCAP) & 1ul << 20) found.push_back(&kNeonDotProd);
  if (getauxval(AT_HWCAP2) & 1ul << 13) found.push_back(&kNeonI8mm);
#elif defined(__aarch64__)
  found = {&best_instruction_set()};
#endif
  return found;
}

int check() {
  std::vector<float> of_others;
  for (const InstructionSet* kernels : instruction_sets()) {
    std::printf("%s\n", kernels->name);
    std::fflush(stdout);
    check_rounding(*kernels);
    check_products(*kernels);
    check_nan(*kernels);
    const std::vector<float> outputs = check_floats(*kernels);
    if (rounds_products(*kernels)) continue;
    if (of_others.empty()) of_others = outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      check_equal(std::string(kernels->name) + " has the bits of others", outputs[i], of_others[i]);
    }
  }
  check_layers(best_instruction_set());
  return 0;
}

}  // namespace
}  // namespace fillmask

int main() { return fillmask::check(); }
