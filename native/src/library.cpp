// Functions that onnxruntime and Python call.
#include "kernels.hpp"
#include "operators.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

// Adds the operators to the options of a session.
EXPORT OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(fillmask::kApiVersion);
  if (!api) {
    return base->GetApi(1)->CreateStatus(ORT_FAIL, "fillmask-native needs onnxruntime 1.17");
  }
  Ort::InitApi(api);
  return fillmask::as_status([&] {
    static const Ort::CustomOpDomain domain = [] {
      Ort::CustomOpDomain created("fillmask");
      created.Add(&fillmask::int8_linear());
      created.Add(&fillmask::packed_attention());
      return created;
    }();
    Ort::UnownedSessionOptions(options).Add(domain);
  });
}

// Returns the name of the instruction set that the operators use.
EXPORT const char* fillmask_native_instruction_set() {
  return fillmask::best_instruction_set().name;
}

// Returns whether that instruction set is faster than onnxruntime's own operators.
EXPORT int fillmask_native_is_fast() { return fillmask::best_instruction_set().fast; }
