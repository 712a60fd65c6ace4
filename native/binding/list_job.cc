#include "list_job.h"

#include <memory>

#include "addon_data.h"
#include "error_value.h"
#include "os/worker_pool.h"
#include "store/block_list.h"
#include "stream_segments.h"

namespace capfleet::binding {
namespace {

using ListResult = Result<std::vector<BlockEntry>>;

template <typename Array, typename Member>
Array toColumn(Napi::Env env, const std::vector<BlockEntry>& blocks, Member member) {
  auto column = Array::New(env, blocks.size());
  for (size_t i = 0; i < blocks.size(); i++) column[i] = blocks[i].*member;
  return column;
}

void settle(Napi::Env env, Napi::Promise::Deferred deferred, const ListResult& blocks) {
  AddonData::of(env)->mainThread()->endOperation();
  if (!blocks) {
    deferred.Reject(toErrorValue(env, blocks.error()));
    return;
  }
  Napi::Object list = Napi::Object::New(env);
  list.Set("minNs", toColumn<Napi::BigInt64Array>(env, *blocks, &BlockEntry::minNs));
  list.Set("maxNs", toColumn<Napi::BigInt64Array>(env, *blocks, &BlockEntry::maxNs));
  list.Set("packets", toColumn<Napi::Uint32Array>(env, *blocks, &BlockEntry::packets));
  list.Set("bytes", toColumn<Napi::Uint32Array>(env, *blocks, &BlockEntry::bytes));
  deferred.Resolve(list);
}

}  // namespace

Napi::Value listBlocksOf(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto deferred = Napi::Promise::Deferred::New(env);
  const std::shared_ptr<MainThread>& mainThread = AddonData::of(env)->mainThread();
  mainThread->beginOperation();
  WorkerPool::shared().makeQueue().post(
      [mainThread, deferred, streams = readStreamSegments(info[0].As<Napi::Array>())] {
        auto blocks = std::make_shared<ListResult>(listBlocks(streams));
        mainThread->run([deferred, blocks](Napi::Env there) { settle(there, deferred, *blocks); });
      });
  return deferred.Promise();
}

}  // namespace capfleet::binding
