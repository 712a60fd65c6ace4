#include "verify_job.h"

#include <atomic>
#include <memory>
#include <string>

#include "background_thread.h"
#include "cancellation.h"
#include "promise_job.h"
#include "store/repair/segment_verify.h"

namespace capfleet::binding {
namespace {

Napi::Value toFinding(Napi::Env env, const SegmentFinding& from) {
  Napi::Object finding = Napi::Object::New(env);
  finding.Set("kind", Napi::String::New(env, nameOf(from.kind)));
  finding.Set("file", Napi::String::New(env, from.file));
  finding.Set("offset", Napi::BigInt::New(env, from.offset));
  finding.Set("packets", Napi::BigInt::New(env, from.packets));
  finding.Set("bytes", Napi::BigInt::New(env, from.bytes));
  finding.Set("isMarked", Napi::Boolean::New(env, from.isMarked));
  finding.Set("message", Napi::String::New(env, from.message));
  return finding;
}

Napi::Value toVerified(Napi::Env env, const VerifiedSegment& from) {
  Napi::Array findings = Napi::Array::New(env, from.findings.size());
  for (uint32_t i = 0; i < from.findings.size(); i++) {
    findings.Set(i, toFinding(env, from.findings[i]));
  }
  Napi::Object verified = Napi::Object::New(env);
  verified.Set("findings", findings);
  verified.Set("isRepaired", Napi::Boolean::New(env, from.isRepaired));
  verified.Set("flags", Napi::Number::New(env, from.entry.flags));
  verified.Set("minNs", Napi::BigInt::New(env, from.entry.minNs));
  verified.Set("maxNs", Napi::BigInt::New(env, from.entry.maxNs));
  verified.Set("packets", Napi::BigInt::New(env, from.entry.packets));
  verified.Set("bytes", Napi::BigInt::New(env, from.entry.bytes));
  verified.Set("sideBytes", Napi::Number::New(env, from.entry.sideBytes));
  verified.Set("checksum", Napi::Number::New(env, from.entry.checksum));
  return verified;
}

}  // namespace

Napi::Value verifySegmentOf(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Cancellation cancellation;
  /// Shared by the work and the JavaScript handle.
  const auto progress = std::make_shared<std::atomic<uint64_t>>(0);
  const auto packed = info[1].As<Napi::Uint8Array>();
  const SegmentEntry entry = parseSegmentEntries({packed.Data(), packed.ByteLength()}).at(0);
  const auto work = [segment = info[0].As<Napi::String>().Utf8Value(), entry,
                     repairs = info[2].As<Napi::Boolean>().Value(), cancellation, progress] {
    SegmentVerifyOptions options;
    options.repairs = repairs;
    options.goesOn = [cancellation, progress](uint64_t checkedBytes) {
      *progress = checkedBytes;
      return !cancellation.isCancelled();
    };
    return verifySegment(segment, entry, options);
  };
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("finished", promiseOf(env, work, toVerified, runInBackground));
  const auto bytesOf = [progress](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::BigInt::New(call.Env(), progress->load());
  };
  handle.Set("checkedBytes", Napi::Function::New(env, bytesOf));
  handle.Set("cancel", cancellation.toFunction(env));
  return handle;
}

}  // namespace capfleet::binding
