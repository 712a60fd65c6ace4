#include "download_wrap.h"

#include <cassert>

#include "addon_data.h"
#include "cancellation.h"
#include "download/download_opening.h"
#include "error_value.h"
#include "os/worker_pool.h"
#include "stream_segments.h"

namespace capfleet::binding {
namespace {

int64_t toInt64(const Napi::Value& value) {
  bool isLossless = false;
  const int64_t result = value.As<Napi::BigInt>().Int64Value(&isLossless);
  assert(isLossless);  // addon.ts has checked
  return result;
}

Napi::Value toBigInt(Napi::Env env, uint64_t value) { return Napi::BigInt::New(env, value); }

Napi::Value toBigInt(Napi::Env env, const std::optional<int64_t>& value) {
  if (!value) return env.Undefined();
  return Napi::BigInt::New(env, *value);
}

std::optional<uint64_t> toCount(const Napi::Value& value) {
  if (value.IsUndefined()) return std::nullopt;
  return static_cast<uint64_t>(toInt64(value));
}

std::vector<FrameCondition> readFrameFilter(const Napi::Array& from) {
  std::vector<FrameCondition> conditions(from.Length());
  for (uint32_t i = 0; i < from.Length(); i++) {
    const auto condition = from.Get(i).As<Napi::Object>();
    const auto field = condition.Get("field").As<Napi::Number>().Uint32Value();
    conditions[i].field = static_cast<FrameField>(field);
    conditions[i].excludes = condition.Get("excludes").As<Napi::Boolean>();
    const auto values = condition.Get("values").As<Napi::Array>();
    for (uint32_t j = 0; j < values.Length(); j++) {
      conditions[i].values.push_back(values.Get(j).As<Napi::Number>().Uint32Value());
    }
  }
  return conditions;
}

std::span<const uint8_t> bytesOf(const Napi::Value& value) {
  const auto bytes = value.As<Napi::Uint8Array>();
  return {bytes.Data(), bytes.ByteLength()};
}

/// Only fails because of the compiled filters.
Status readFilters(const Napi::Object& from, DownloadOptions& options) {
  options.frameFilter = readFrameFilter(from.Get("frameFilter").As<Napi::Array>());
  options.filterDecap = from.Get("filterDecap").As<Napi::Boolean>();
  options.readsAllBlocks = from.Get("readsAllBlocks").As<Napi::Boolean>();
  if (const Napi::Value filter = from.Get("filter"); !filter.IsUndefined()) {
    Result<BpfProgram> program = BpfProgram::parse(bytesOf(filter));
    if (!program) return program.error();
    options.filter = std::move(*program);
  }
  if (const Napi::Value addresses = from.Get("addresses"); !addresses.IsUndefined()) {
    auto set = AddressSet::parse(bytesOf(addresses));
    if (!set) return set.error();
    options.addresses = std::move(*set);
  }
  if (const Napi::Value regex = from.Get("regex"); !regex.IsUndefined()) {
    auto matcher = RegexMatcher::load(bytesOf(regex));
    if (!matcher) return matcher.error();
    options.regex = std::move(*matcher);
  }
  return ok();
}

std::vector<uint8_t> copyOf(const Napi::Value& value) {
  const std::span<const uint8_t> bytes = bytesOf(value);
  return {bytes.begin(), bytes.end()};
}

PcapngOptions readPcapng(const Napi::Object& from) {
  PcapngOptions options;
  options.head = copyOf(from.Get("head"));
  const auto interfaces = from.Get("interfaces").As<Napi::Array>();
  for (uint32_t i = 0; i < interfaces.Length(); i++) {
    const auto one = interfaces.Get(i).As<Napi::Object>();
    options.interfaces.push_back({one.Get("port").As<Napi::Number>().Uint32Value(),
                                  one.Get("linkType").As<Napi::Number>().Uint32Value(),
                                  copyOf(one.Get("description"))});
  }
  options.described = from.Get("described").As<Napi::Number>().Uint32Value();
  const auto remarks = from.Get("remarks").As<Napi::Array>();
  for (uint32_t i = 0; i < remarks.Length(); i++) {
    const auto one = remarks.Get(i).As<Napi::Object>();
    options.remarks.push_back({toInt64(one.Get("atNs")), copyOf(one.Get("options"))});
  }
  options.otherBytes = from.Get("otherBytes").As<Napi::Number>().Uint32Value();
  return options;
}

/// Only fails because of the compiled filters.
Result<DownloadOptions> readOptions(const Napi::Object& from) {
  const auto number = [&](const char* name) { return from.Get(name).As<Napi::Number>(); };
  DownloadOptions options;
  options.streams = readStreamSegments(from.Get("streams").As<Napi::Array>());
  options.beginNs = toInt64(from.Get("beginNs"));
  options.endNs = toInt64(from.Get("endNs"));
  options.stripped = static_cast<HeaderKinds>(number("stripped").Uint32Value());
  options.sliceBytes = number("sliceBytes").Uint32Value();
  if (const Napi::Value dedupNs = from.Get("dedupNs"); !dedupNs.IsUndefined()) {
    const auto key = static_cast<DuplicateKey>(number("dedupKey").Uint32Value());
    options.dedup = DuplicateOptions{toInt64(dedupNs), key};
  }
  options.toMicroseconds = from.Get("toMicroseconds").As<Napi::Boolean>();
  options.compression.codec = static_cast<Codec>(number("codec").Int32Value());
  options.compression.level = number("level").Int32Value();
  options.emptyLinkTypeWord = number("emptyLinkType").Uint32Value();
  if (const Napi::Value pcapng = from.Get("pcapng"); !pcapng.IsUndefined()) {
    options.pcapng = readPcapng(pcapng.As<Napi::Object>());
  }
  if (const Napi::Value tsMaxNs = from.Get("tsMaxNs"); !tsMaxNs.IsUndefined()) {
    options.tsMaxNs = toInt64(tsMaxNs);
  }
  options.limits = {toCount(from.Get("maxBytes")), toCount(from.Get("maxPackets"))};
  options.afterBytes = static_cast<uint64_t>(toInt64(from.Get("afterBytes")));
  options.clock.source = static_cast<TimeSource>(number("timeSource").Int32Value());
  if (const Napi::Value limitNs = from.Get("mac48LimitNs"); !limitNs.IsUndefined()) {
    options.clock.mac48LimitNs = toInt64(limitNs);
  }
  if (Status status = readFilters(from, options); !status) return status.error();
  return options;
}

/// Shared by the steps and the answer.
struct OpenJob {
  DownloadOpening opening;
  WorkerPool::Queue queue;
  std::shared_ptr<MainThread> mainThread;
  Napi::Promise::Deferred deferred;
  Cancellation cancellation;
};

using OpenResult = Result<std::shared_ptr<Download>>;

void settleOpen(Napi::Env env, OpenJob& job, OpenResult& opened) {
  AddonData& data = *AddonData::of(env);
  data.mainThread()->endOperation();
  if (!opened) {
    job.deferred.Reject(toErrorValue(env, opened.error()));
    return;
  }
  const auto holder = Napi::External<std::shared_ptr<Download>>::New(env, &*opened);
  job.deferred.Resolve(data.downloadConstructor.New({holder}));
}

void finishOpening(const std::shared_ptr<OpenJob>& job, OpenResult result) {
  job->mainThread->run([job, opened = std::make_shared<OpenResult>(std::move(result))](
                           Napi::Env env) { settleOpen(env, *job, *opened); });
}

/// One step, on a worker thread; the next one is queued.
void runOpening(const std::shared_ptr<OpenJob>& job) {
  if (job->cancellation.isCancelled()) {
    finishOpening(job, Error{Code::kCancelled, "the download was cancelled"});
    return;
  }
  OpenResult opened = job->opening.step();
  if (!opened || *opened) {
    finishOpening(job, std::move(opened));
  } else {
    job->queue.post([job] { runOpening(job); });
  }
}

Napi::Object pcapngTotals(Napi::Env env, const DownloadTotals& totals) {
  Napi::Object result = Napi::Object::New(env);
  Napi::Array packets = Napi::Array::New(env, totals.interfacePackets.size());
  for (uint32_t i = 0; i < totals.interfacePackets.size(); i++) {
    packets.Set(i, toBigInt(env, totals.interfacePackets[i]));
  }
  result.Set("interfacePackets", packets);
  result.Set("describedInterfaces", Napi::Number::New(env, totals.describedInterfaces));
  result.Set("remarkedPackets", Napi::Number::New(env, totals.remarkedPackets));
  result.Set("leftToSkip", toBigInt(env, totals.leftToSkip));
  return result;
}

/// Reports memory that JavaScript's garbage collector cannot see. Not while an environment shuts
/// down.
void tellHeldBytes(Napi::Env env, int64_t change) {
  int64_t sum = 0;
  napi_adjust_external_memory(env, change, &sum);
}

}  // namespace

void DownloadWrap::define(Napi::Env env) {
  const Napi::Function constructor =
      DefineClass(env, "NativeDownload",
                  {InstanceMethod<&DownloadWrap::next>("next"),
                   InstanceMethod<&DownloadWrap::release>("release"),
                   InstanceMethod<&DownloadWrap::totals>("totals"),
                   InstanceMethod<&DownloadWrap::close>("close"),
                   InstanceAccessor<&DownloadWrap::linkType>("linkType"),
                   InstanceAccessor<&DownloadWrap::snaplen>("snaplen")});
  AddonData::of(env)->downloadConstructor = Napi::Persistent(constructor);
}

Napi::Value DownloadWrap::open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto deferred = Napi::Promise::Deferred::New(env);
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("opened", deferred.Promise());
  const Cancellation cancellation;
  Result<DownloadOptions> options = readOptions(info[0].As<Napi::Object>());
  if (!options) {
    deferred.Reject(toErrorValue(env, options.error()));
    handle.Set("cancel", cancellation.toFunction(env));
    return handle;
  }
  AddonData& data = *AddonData::of(env);
  options->checkedBlocks = data.checkedBlocks();
  WorkerPool& workers = WorkerPool::shared();
  const std::shared_ptr<OpenJob> job(
      new OpenJob{DownloadOpening(std::move(*options), workers, data.slabs()), workers.makeQueue(),
                  data.mainThread(), deferred, cancellation});
  data.mainThread()->beginOperation();
  job->queue.post([job] { runOpening(job); });
  handle.Set("cancel", cancellation.toFunction(env));
  return handle;
}

// Only settleOpen() can call this constructor.
DownloadWrap::DownloadWrap(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<DownloadWrap>(info),
      data_(AddonData::of(info.Env())),
      download_(*info[0].As<Napi::External<std::shared_ptr<Download>>>().Data()),
      linkTypeWord_(download_->linkTypeWord()),
      snaplen_(download_->snaplen()),
      heldBytes_(static_cast<int64_t>(download_->heldBytes())) {
  tellHeldBytes(info.Env(), heldBytes_);
}

DownloadWrap::~DownloadWrap() {
  if (download_) download_->close();
  for (const auto& [id, slab] : parts_) data_->buffers.forget(slab.get());
  tellHeldBytes(Env(), -heldBytes_);
}

/// Frees what the download holds once nothing of it can be requested any more, without waiting for
/// the garbage collector.
void DownloadWrap::dropWhenDone() {
  if (!isClosed_ || isWaiting_ || !download_ || !parts_.empty()) return;
  closedTotals_ = download_->totals();
  download_.reset();
  tellHeldBytes(Env(), -heldBytes_);
  heldBytes_ = 0;
}

Napi::Value DownloadWrap::next(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto deferred = Napi::Promise::Deferred::New(env);
  if (!download_) {
    deferred.Reject(toErrorValue(env, {Code::kCancelled, "the download was closed"}));
    return deferred.Promise();
  }
  const std::shared_ptr<MainThread> mainThread = data_->mainThread();
  // This object, and the process, must stay alive until the answer.
  mainThread->beginOperation();
  isWaiting_ = true;
  Ref();
  download_->next([this, mainThread, deferred](Download::Answer answer) {
    mainThread->run([this, deferred, answer = std::move(answer)](Napi::Env there) {
      settle(there, deferred, answer);
    });
  });
  return deferred.Promise();
}

void DownloadWrap::settle(Napi::Env env, Napi::Promise::Deferred deferred,
                          const Download::Answer& answer) {
  data_->mainThread()->endOperation();
  isWaiting_ = false;
  if (!answer) {
    deferred.Reject(toErrorValue(env, answer.error()));
  } else if (*answer == nullptr) {
    deferred.Resolve(env.Undefined());
  } else {
    deferred.Resolve(handOut(env, *answer));
  }
  // It may have been closed since: an answer that was in progress still arrives.
  dropWhenDone();
  Unref();
}

Napi::Value DownloadWrap::handOut(Napi::Env env, const SlabPtr& slab) {
  const uint32_t id = nextId_++;
  parts_.emplace(id, slab);
  Napi::Object part = data_->buffers.partOf(env, slab);
  part.Set("id", Napi::Number::New(env, id));
  return part;
}

void DownloadWrap::release(const Napi::CallbackInfo& info) {
  const auto found = parts_.find(info[0].As<Napi::Number>().Uint32Value());
  if (found == parts_.end()) return;
  const SlabPtr slab = std::move(found->second);
  parts_.erase(found);
  download_->release(slab.get());
  dropWhenDone();
}

Napi::Value DownloadWrap::totals(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const DownloadTotals totals = download_ ? download_->totals() : closedTotals_;
  Napi::Object result = Napi::Object::New(env);
  result.Set("packets", toBigInt(env, totals.packets));
  result.Set("bytes", toBigInt(env, totals.bytes));
  result.Set("skippedPackets", toBigInt(env, totals.skippedPackets));
  result.Set("outputBytes", toBigInt(env, totals.outputBytes));
  result.Set("readPackets", toBigInt(env, totals.readPackets));
  result.Set("readBytes", toBigInt(env, totals.readBytes));
  result.Set("excludedPackets", toBigInt(env, totals.excludedPackets));
  result.Set("duplicates", toBigInt(env, totals.duplicates));
  result.Set("passedBlocks", toBigInt(env, totals.passedBlocks));
  result.Set("ruledOutSegments", toBigInt(env, totals.ruledOutSegments));
  result.Set("corruptBlocks", toBigInt(env, totals.corruptBlocks));
  result.Set("firstNs", toBigInt(env, totals.firstNs));
  result.Set("lastNs", toBigInt(env, totals.lastNs));
  result.Set("vendorTimeFallbacks", toBigInt(env, totals.vendorTimeFallbacks));
  result.Set("latePackets", toBigInt(env, totals.latePackets));
  result.Set("truncated", Napi::Boolean::New(env, totals.isTruncated));
  result.Set("nextNs", toBigInt(env, totals.nextNs));
  if (totals.isPcapng) result.Set("pcapng", pcapngTotals(env, totals));
  return result;
}

void DownloadWrap::close(const Napi::CallbackInfo&) {
  if (!download_) return;
  download_->close();
  isClosed_ = true;
  dropWhenDone();
}

Napi::Value DownloadWrap::linkType(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), linkTypeWord_);
}

Napi::Value DownloadWrap::snaplen(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), snaplen_);
}

}  // namespace capfleet::binding
