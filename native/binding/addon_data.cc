#include "addon_data.h"

namespace capfleet::binding {

void AddonData::create(Napi::Env env) {
  env.SetInstanceData(new std::shared_ptr<AddonData>(new AddonData(env)));
}

const std::shared_ptr<AddonData>& AddonData::of(Napi::Env env) {
  return *env.GetInstanceData<std::shared_ptr<AddonData>>();
}

Napi::Value AddonData::bufferOf(Napi::Env env, const SlabPtr& slab) {
  const auto found = buffers_.find(slab.get());
  if (found != buffers_.end()) return found->second.Value();
  // The Buffer shares the ownership of the memory, and so can outlive everything else.
  auto owner = std::make_unique<SlabPtr>(slab);
  const auto buffer = Napi::Buffer<uint8_t>::New(
      env, slab->bytes.get(), kSlabBytes + kSlabHeadroomBytes,
      [](Napi::BasicEnv, uint8_t*, SlabPtr* hint) { delete hint; }, owner.get());
  owner.release();
  buffers_.emplace(slab.get(), Napi::Persistent(buffer.As<Napi::Object>()));
  return buffer;
}

void AddonData::forget(const Slab* slab) { buffers_.erase(slab); }

}  // namespace capfleet::binding
