// The exports of the gateway's addon. The files of native/ that load it declare them for
// TypeScript.
#include <napi.h>

#include "addon_data.h"
#include "address_counter_wrap.h"
#include "compressor_wrap.h"
#include "error_value.h"
#include "large_allocations.h"
#include "pcapng_records_wrap.h"
#include "record_merge_wrap.h"

namespace {

Napi::Object start(Napi::Env env, Napi::Object exports) {
  using namespace capfleet::binding;
  returnLargeAllocations();
  AddonData::create(env);
  exports.Set("initialize", Napi::Function::New<initialize>(env));
  exports.Set("AddressCounter", AddressCounterWrap::define(env));
  exports.Set("PcapngRecords", PcapngRecordsWrap::define(env));
  exports.Set("MergedInterfaces", MergedInterfacesWrap::define(env));
  exports.Set("RecordInput", RecordInputWrap::define(env));
  exports.Set("RecordMerge", RecordMergeWrap::define(env));
  exports.Set("Compressor", CompressorWrap::define(env));
  return exports;
}

}  // namespace

NODE_API_MODULE(capfleet_gateway, start)
