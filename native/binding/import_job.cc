#include "import_job.h"

#include <memory>
#include <thread>

#include "addon_data.h"
#include "cancellation.h"
#include "error_value.h"
#include "import/importer.h"
#include "os/blocked_signals.h"
#include "segment_values.h"

namespace capfleet::binding {
namespace {

/// Shared by the import's thread and the JavaScript thread.
struct ImportJob {
  ImportOptions options;
  Cancellation cancellation;
  std::shared_ptr<MainThread> mainThread;
  Napi::FunctionReference onProgress;  ///< JavaScript thread only
};

Napi::Value toBigInt(Napi::Env env, uint64_t value) { return Napi::BigInt::New(env, value); }

template <typename T, typename Convert>
Napi::Array toArray(Napi::Env env, const std::vector<T>& values, Convert convert) {
  Napi::Array array = Napi::Array::New(env, values.size());
  for (uint32_t i = 0; i < values.size(); i++) array.Set(i, convert(env, values[i]));
  return array;
}

Napi::Object fromStream(Napi::Env env, const ImportedStream& from) {
  return toStream(env, from.port, from.header, from.segments);
}

Napi::Object toDamage(Napi::Env env, const ImportDamage& from) {
  Napi::Object damage = Napi::Object::New(env);
  damage.Set("file", Napi::String::New(env, from.file));
  damage.Set("offset", toBigInt(env, from.offset));
  damage.Set("compressed", Napi::Boolean::New(env, from.compressed));
  damage.Set("message", Napi::String::New(env, from.message));
  return damage;
}

Napi::Object toNote(Napi::Env env, const ImportNote& from) {
  Napi::Object note = Napi::Object::New(env);
  note.Set("file", Napi::String::New(env, from.file));
  note.Set("message", Napi::String::New(env, from.message));
  return note;
}

Napi::Object toResult(Napi::Env env, const ImportResult& from) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("streams", toArray(env, from.streams, fromStream));
  result.Set("packets", toBigInt(env, from.packets));
  result.Set("packetsOutOfTimeRange", toBigInt(env, from.packetsOutOfTimeRange));
  result.Set("damages", toArray(env, from.damages, toDamage));
  result.Set("notes", toArray(env, from.notes, toNote));
  return result;
}

void reportProgress(Napi::Env env, const ImportJob& job, const ImportProgress& from) {
  Napi::Object progress = Napi::Object::New(env);
  progress.Set("inputBytes", toBigInt(env, from.inputBytes));
  progress.Set("totalInputBytes", toBigInt(env, from.totalInputBytes));
  progress.Set("packets", toBigInt(env, from.packets));
  job.onProgress.Call({progress});
}

void settle(Napi::Env env, ImportJob& job, Napi::Promise::Deferred deferred,
            const Result<ImportResult>& result) {
  job.mainThread->endOperation();
  job.onProgress.Reset();
  if (result) {
    deferred.Resolve(toResult(env, *result));
  } else {
    deferred.Reject(toErrorValue(env, result.error()));
  }
}

void runImport(const std::shared_ptr<ImportJob>& job, Napi::Promise::Deferred deferred) {
  const auto onProgress = [&job](const ImportProgress& progress) {
    job->mainThread->run([job, progress](Napi::Env env) { reportProgress(env, *job, progress); });
    return !job->cancellation.isCancelled();
  };
  auto result =
      std::make_shared<Result<ImportResult>>(importCaptureFiles(job->options, onProgress));
  job->mainThread->run(
      [job, deferred, result](Napi::Env env) { settle(env, *job, deferred, *result); });
}

}  // namespace

Napi::Value startImport(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto from = info[0].As<Napi::Object>();
  auto job = std::make_shared<ImportJob>();
  const auto files = from.Get("files").As<Napi::Array>();
  for (uint32_t i = 0; i < files.Length(); i++) {
    job->options.files.push_back(files.Get(i).As<Napi::String>().Utf8Value());
  }
  job->options.directory = from.Get("directory").As<Napi::String>().Utf8Value();
  job->options.segmentBytes =
      static_cast<uint64_t>(from.Get("segmentBytes").As<Napi::Number>().Int64Value());
  if (const Napi::Value maxBytes = from.Get("maxBytes"); maxBytes.IsBigInt()) {
    bool isExact = false;
    job->options.maxBytes = maxBytes.As<Napi::BigInt>().Uint64Value(&isExact);
  }
  job->options.maxRatio = from.Get("maxRatio").As<Napi::Number>().Uint32Value();
  job->mainThread = AddonData::of(env)->mainThread();
  job->onProgress = Napi::Persistent(info[1].As<Napi::Function>());
  // settle() releases it. If the process ends first, another thread must not.
  job->onProgress.SuppressDestruct();

  const auto deferred = Napi::Promise::Deferred::New(env);
  job->mainThread->beginOperation();
  const BlockedSignals blocked;
  std::thread([job, deferred] { runImport(job, deferred); }).detach();
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("finished", deferred.Promise());
  handle.Set("cancel", job->cancellation.toFunction(env));
  return handle;
}

}  // namespace capfleet::binding
