#include "addon_data.h"

namespace capfleet::binding {

void AddonData::create(Napi::Env env) {
  env.SetInstanceData(new std::shared_ptr<AddonData>(new AddonData(env)));
}

const std::shared_ptr<AddonData>& AddonData::of(Napi::Env env) {
  return *env.GetInstanceData<std::shared_ptr<AddonData>>();
}

}  // namespace capfleet::binding
