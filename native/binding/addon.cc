// The exports of the addon for the appliance and the recorder. The files of native/ that load it
// declare them for TypeScript.
#include <napi.h>

#include "addon_data.h"
#include "address_counter_wrap.h"
#include "clock.h"
#include "count_job.h"
#include "download_wrap.h"
#include "error_value.h"
#include "filter/bpf_machine_code.h"
#include "import_job.h"
#include "large_allocations.h"
#include "list_job.h"
#include "live_capture_wrap.h"
#include "recover_job.h"
#include "search_job.h"
#include "segment_job.h"
#include "segment_log_calls.h"
#include "sieve_job.h"
#include "vendor_time/vendor_clock.h"
#include "verify_job.h"

namespace capfleet::binding {
namespace {

/// lookBackNs(timeSource: number): bigint, as VendorClock::lookBackNs().
Napi::Value lookBackNs(const Napi::CallbackInfo& info) {
  const auto source = static_cast<TimeSource>(info[0].As<Napi::Number>().Int32Value());
  return Napi::BigInt::New(info.Env(), VendorClock::lookBackNs(source));
}

/// hasMachineCode(): boolean, as BpfMachineCode::isAvailable().
Napi::Value hasMachineCode(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), BpfMachineCode::isAvailable());
}

}  // namespace

Napi::Object defineExports(Napi::Env env, Napi::Object exports) {
  returnLargeAllocations();
  AddonData::create(env);
  DownloadWrap::define(env);
  LiveCaptureWrap::define(env);
  exports.Set("initialize", Napi::Function::New<initialize>(env));
  exports.Set("clockNs", Napi::Function::New<clockNs>(env));
  exports.Set("isClockSynced", Napi::Function::New<isClockSynced>(env));
  exports.Set("openDownload", Napi::Function::New<&DownloadWrap::open>(env));
  exports.Set("lookBackNs", Napi::Function::New<lookBackNs>(env));
  exports.Set("hasMachineCode", Napi::Function::New<hasMachineCode>(env));
  exports.Set("countPackets", Napi::Function::New<countPackets>(env));
  exports.Set("listBlocks", Napi::Function::New<listBlocksOf>(env));
  exports.Set("openLiveCapture", Napi::Function::New<&LiveCaptureWrap::open>(env));
  exports.Set("recoverStream", Napi::Function::New<recoverStream>(env));
  exports.Set("measureSegment", Napi::Function::New<measureSegmentOf>(env));
  exports.Set("measureFinishedSegment", Napi::Function::New<measureFinishedSegmentOf>(env));
  exports.Set("takeSuspects", Napi::Function::New<takeSuspects>(env));
  exports.Set("removeSegment", Napi::Function::New<removeSegmentOf>(env));
  exports.Set("sealLogEntries", Napi::Function::New<sealLogEntriesOf>(env));
  exports.Set("checkLogEntries", Napi::Function::New<checkLogEntriesOf>(env));
  exports.Set("addSieves", Napi::Function::New<addSievesTo>(env));
  exports.Set("repairAddresses", Napi::Function::New<repairAddressesOf>(env));
  exports.Set("transposeAddresses", Napi::Function::New<transposeAddressesOf>(env));
  exports.Set("searchAddresses", Napi::Function::New<searchAddresses>(env));
  exports.Set("AddressCounter", AddressCounterWrap::define(env));
  exports.Set("verifySegment", Napi::Function::New<verifySegmentOf>(env));
  exports.Set("startImport", Napi::Function::New<startImport>(env));
  return exports;
}

}  // namespace capfleet::binding

namespace {
// The macro only accepts a plain name.
Napi::Object start(Napi::Env env, Napi::Object exports) {
  return capfleet::binding::defineExports(env, exports);
}
}  // namespace

NODE_API_MODULE(capfleet, start)
