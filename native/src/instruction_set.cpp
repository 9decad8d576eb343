#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "kernels.hpp"

namespace fillmask {
namespace {

#if defined(__x86_64__)
__attribute__((target("xsave"))) uint64_t enabled_registers() { return _xgetbv(0); }

const InstructionSet& choose() {
  constexpr uint32_t kOsSavesRegisters = 1u << 27, kFma = 1u << 12;  // leaf 1, ECX
  // leaf 7, EBX: AVX512 F, DQ, BW and VL; ECX: VNNI; EDX: AMX tiles with int8
  constexpr uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  constexpr uint32_t kVnni = 1u << 11, kAmxInt8 = 1u << 25;
  constexpr uint64_t kVectorRegisters = 0xE6;
  uint32_t a, b, c, d;
  const bool is_enabled = __get_cpuid(1, &a, &b, &c, &d) && c & kOsSavesRegisters && c & kFma &&
                          (enabled_registers() & kVectorRegisters) == kVectorRegisters;
  const bool has_vnni = is_enabled && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
                        (b & kAvx512) == kAvx512 && c & kVnni;
  // onnxruntime multiplies with AMX, and nobody has compared the two there
  return has_vnni && !(d & kAmxInt8) ? kAvx512Vnni : kPortable;
}
#elif defined(__aarch64__) && defined(__linux__)
const InstructionSet& choose() {
  constexpr unsigned long kDotProd = 1ul << 20, kI8mm = 1ul << 13;
  if (getauxval(AT_HWCAP2) & kI8mm) return kNeonI8mm;
  return getauxval(AT_HWCAP) & kDotProd ? kNeonDotProd : kPortable;
}
#elif defined(__aarch64__) && defined(__APPLE__)
bool has(const char* feature) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(feature, &value, &size, nullptr, 0) == 0 && value;
}

const InstructionSet& choose() {
  if (has("hw.optional.arm.FEAT_I8MM")) return kNeonI8mm;
  return has("hw.optional.arm.FEAT_DotProd") ? kNeonDotProd : kPortable;
}
#else
const InstructionSet& choose() { return kPortable; }
#endif

}  // namespace

const InstructionSet& best_instruction_set() {
  static const InstructionSet& best = choose();
  return best;
}

}  // namespace fillmask
