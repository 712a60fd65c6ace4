#include "slab_buffers.h"

#include <memory>

namespace capfleet::binding {
namespace {

Napi::Object bufferOver(Napi::Env env, const SlabPtr& slab) {
  auto owner = std::make_unique<SlabPtr>(slab);
  const auto buffer = Napi::Buffer<uint8_t>::New(
      env, slab->bytes.get(), kSlabBytes + kSlabHeadroomBytes,
      [](Napi::BasicEnv, uint8_t*, SlabPtr* hint) { delete hint; }, owner.get());
  owner.release();
  return buffer.As<Napi::Object>();
}

}  // namespace

Napi::Object SlabBuffers::partOf(Napi::Env env, const SlabPtr& slab) {
  auto found = buffers_.find(slab.get());
  if (found == buffers_.end()) {
    found = buffers_.emplace(slab.get(), Napi::Persistent(bufferOver(env, slab))).first;
  }
  Napi::Object part = Napi::Object::New(env);
  part.Set("slab", found->second.Value());
  part.Set("length", Napi::Number::New(env, static_cast<double>(slab->size)));
  return part;
}

}  // namespace capfleet::binding
