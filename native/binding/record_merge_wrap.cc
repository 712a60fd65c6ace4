#include "record_merge_wrap.h"

#include <optional>

#include "pcapng_records_wrap.h"

namespace capfleet::binding {
namespace {

Napi::Value toNumber(Napi::Env env, uint64_t value) {
  return Napi::Number::New(env, static_cast<double>(value));
}

int64_t toInt64(const Napi::Value& value) {
  bool isLossless = false;
  return value.As<Napi::BigInt>().Int64Value(&isLossless);
}

std::optional<int64_t> optionalInt64(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (value.IsUndefined()) return std::nullopt;
  return toInt64(value);
}

std::optional<uint64_t> optionalUint64(const Napi::Object& from, const char* name) {
  const auto value = optionalInt64(from, name);
  if (!value) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<uint32_t> optionalUint32(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (value.IsUndefined()) return std::nullopt;
  return value.As<Napi::Number>().Uint32Value();
}

RecordInputOptions readInputOptions(const Napi::Object& from) {
  return {.nanoseconds = from.Get("nanoseconds").As<Napi::Boolean>(),
          .widens = from.Get("widens").As<Napi::Boolean>(),
          .bigEndian = from.Get("bigEndian").As<Napi::Boolean>(),
          .alignNs = toInt64(from.Get("alignNs")),
          .marksTail = from.Get("marksTail").As<Napi::Boolean>(),
          .marksAll = from.Get("marksAll").As<Napi::Boolean>(),
          .isTagged = from.Get("isTagged").As<Napi::Boolean>()};
}

SortWindow::Limits readWindow(const Napi::Object& from) {
  return {.ns = toInt64(from.Get("ns")),
          .bytes = static_cast<size_t>(from.Get("bytes").As<Napi::Number>().Int64Value()),
          .fromNs = toInt64(from.Get("fromNs")),
          .toNs = toInt64(from.Get("toNs"))};
}

std::optional<DuplicateOptions> readDedup(const Napi::Object& from) {
  const auto spanNs = optionalInt64(from, "dedupNs");
  if (!spanNs) return std::nullopt;
  const uint32_t key = from.Get("dedupKey").As<Napi::Number>();
  return DuplicateOptions{*spanNs, static_cast<DuplicateKey>(key)};
}

std::optional<PcapngOutput> readPcapng(const Napi::Object& from) {
  const Napi::Value value = from.Get("pcapng");
  if (value.IsUndefined()) return std::nullopt;
  const auto pcapng = value.As<Napi::Object>();
  const auto interfaces = pcapng.Get("interfaces").As<Napi::Object>();
  PcapngOutput output{.interfaces = &MergedInterfacesWrap::Unwrap(interfaces)->interfaces(),
                      .ofInputs = {},
                      .closingBytes = pcapng.Get("closingBytes").As<Napi::Number>().Uint32Value()};
  const auto ofInputs = pcapng.Get("ofInputs").As<Napi::Array>();
  for (uint32_t i = 0; i < ofInputs.Length(); i++) {
    const Napi::Value one = ofInputs.Get(i);
    if (one.IsUndefined()) {
      output.ofInputs.emplace_back();
    } else {
      output.ofInputs.emplace_back(one.As<Napi::Number>().Uint32Value());
    }
  }
  return output;
}

RecordMergeOptions readMergeOptions(const Napi::Object& from) {
  return {.maxSpanNs = optionalInt64(from, "maxSpanNs"),
          .maxPackets = optionalUint64(from, "maxPackets"),
          .maxBytes = optionalUint64(from, "maxBytes"),
          .dedup = readDedup(from),
          .linkTypeWord = from.Get("linkType").As<Napi::Number>(),
          .sliceBytes = optionalUint32(from, "sliceBytes"),
          .toMicroseconds = from.Get("toMicroseconds").As<Napi::Boolean>(),
          .pcapng = readPcapng(from)};
}

Napi::Value toMark(Napi::Env env, const RecordMark& mark) {
  Napi::Object value = Napi::Object::New(env);
  value.Set("packets", toNumber(env, mark.packets));
  value.Set("bytes", toNumber(env, mark.bytes));
  value.Set("hash", Napi::BigInt::New(env, mark.hash));
  return value;
}

Napi::Object toFigures(Napi::Env env, RecordInput& input) {
  const RecordFigures figures = input.figures();
  const auto toNs = [&](int64_t time) -> Napi::Value {
    if (figures.packets == 0) return env.Undefined();
    return Napi::BigInt::New(env, time * input.unitNs());
  };
  Napi::Object value = Napi::Object::New(env);
  value.Set("packets", toNumber(env, figures.packets));
  value.Set("bytes", toNumber(env, figures.bytes));
  value.Set("outOfOrder", toNumber(env, figures.outOfOrder));
  value.Set("firstNs", toNs(figures.firstTime));
  value.Set("lastNs", toNs(figures.lastTime));
  return value;
}

std::span<uint8_t> spanOf(const Napi::Value& bytes) {
  auto array = bytes.As<Napi::Uint8Array>();
  return {array.Data(), array.ByteLength()};
}

}  // namespace

Napi::Function RecordInputWrap::define(Napi::Env env) {
  return DefineClass(
      env, "RecordInput",
      {InstanceMethod<&RecordInputWrap::show>("show"), InstanceMethod<&RecordInputWrap::end>("end"),
       InstanceMethod<&RecordInputWrap::breakOff>("breakOff"),
       InstanceMethod<&RecordInputWrap::forget>("forget"),
       InstanceMethod<&RecordInputWrap::hasRecord>("hasRecord"),
       InstanceMethod<&RecordInputWrap::skip>("skip"),
       InstanceMethod<&RecordInputWrap::skippedHash>("skippedHash"),
       InstanceMethod<&RecordInputWrap::impossibleLength>("impossibleLength"),
       InstanceMethod<&RecordInputWrap::partialBytes>("partialBytes"),
       InstanceMethod<&RecordInputWrap::untaken>("untaken"),
       InstanceMethod<&RecordInputWrap::figures>("figures"),
       InstanceMethod<&RecordInputWrap::arrived>("arrived")});
}

RecordInputWrap::RecordInputWrap(const Napi::CallbackInfo& info)
    : ObjectWrap(info), stream_(readInputOptions(info[0].As<Napi::Object>())) {
  const Napi::Value window = info[0].As<Napi::Object>().Get("sortWindow");
  if (window.IsObject()) window_.emplace(readWindow(window.As<Napi::Object>()));
}

Napi::Value RecordInputWrap::show(const Napi::CallbackInfo& info) {
  stream_.show(spanOf(info[0]));
  if (window_) {
    window_->takeAll(stream_);
  } else {
    shown_ = Napi::Persistent(info[0].As<Napi::Object>());
  }
  return hasRecord(info);
}

Napi::Value RecordInputWrap::end(const Napi::CallbackInfo& info) {
  if (window_) window_->end();
  return hasRecord(info);
}

Napi::Value RecordInputWrap::breakOff(const Napi::CallbackInfo& info) {
  stream_.forget();
  shown_.Reset();
  return hasRecord(info);
}

void RecordInputWrap::forget(const Napi::CallbackInfo&) {
  stream_.forget();
  shown_.Reset();
  if (window_) window_->forget();
}

Napi::Value RecordInputWrap::hasRecord(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), input().hasRecord());
}

Napi::Value RecordInputWrap::skip(const Napi::CallbackInfo& info) {
  const auto count = static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value());
  const bool isHashed = info[1].As<Napi::Boolean>();
  return toNumber(info.Env(), input().skip(count, isHashed ? &skippedHash_ : nullptr));
}

Napi::Value RecordInputWrap::skippedHash(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), skippedHash_);
}

Napi::Value RecordInputWrap::impossibleLength(const Napi::CallbackInfo& info) {
  const auto length = stream_.impossibleLength();
  return length ? toNumber(info.Env(), *length) : info.Env().Undefined();
}

Napi::Value RecordInputWrap::partialBytes(const Napi::CallbackInfo& info) {
  return toNumber(info.Env(), stream_.partialBytes());
}

Napi::Value RecordInputWrap::untaken(const Napi::CallbackInfo& info) {
  const std::vector<uint8_t> bytes = stream_.untaken();
  return Napi::Buffer<uint8_t>::Copy(info.Env(), bytes.data(), bytes.size());
}

Napi::Value RecordInputWrap::figures(const Napi::CallbackInfo& info) {
  return toFigures(info.Env(), input());
}

Napi::Value RecordInputWrap::arrived(const Napi::CallbackInfo& info) {
  const RecordFigures figures = stream_.figures();
  Napi::Object value = toFigures(info.Env(), stream_);
  value.Set("ties", toMark(info.Env(), figures.ties));
  value.Set("tail", toMark(info.Env(), figures.tail));
  return value;
}

Napi::Function RecordMergeWrap::define(Napi::Env env) {
  return DefineClass(env, "RecordMerge",
                     {InstanceMethod<&RecordMergeWrap::advance>("advance"),
                      InstanceMethod<&RecordMergeWrap::state>("state"),
                      InstanceMethod<&RecordMergeWrap::dryInput>("dryInput"),
                      InstanceMethod<&RecordMergeWrap::refilled>("refilled"),
                      InstanceMethod<&RecordMergeWrap::nextNs>("nextNs"),
                      InstanceMethod<&RecordMergeWrap::dropped>("dropped")});
}

RecordMergeWrap::RecordMergeWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const auto list = info[0].As<Napi::Array>();
  list_ = Napi::Persistent(info[0].As<Napi::Object>());
  options_ = Napi::Persistent(info[1].As<Napi::Object>());
  std::vector<RecordInput*> inputs(list.Length());
  for (uint32_t i = 0; i < inputs.size(); i++) {
    inputs[i] = &RecordInputWrap::Unwrap(list.Get(i).As<Napi::Object>())->input();
  }
  merge_ = std::make_unique<RecordMerge>(std::move(inputs),
                                         readMergeOptions(info[1].As<Napi::Object>()));
}

Napi::Value RecordMergeWrap::advance(const Napi::CallbackInfo& info) {
  size_t written = info[1].As<Napi::Number>().Uint32Value();
  state_ = merge_->advance(spanOf(info[0]), written);
  return toNumber(info.Env(), written);
}

Napi::Value RecordMergeWrap::state(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<int>(state_));
}

Napi::Value RecordMergeWrap::dryInput(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), merge_->dryInput());
}

void RecordMergeWrap::refilled(const Napi::CallbackInfo&) { merge_->refilled(); }

Napi::Value RecordMergeWrap::nextNs(const Napi::CallbackInfo& info) {
  const auto ns = merge_->nextNs();
  if (!ns) return info.Env().Undefined();
  return Napi::BigInt::New(info.Env(), *ns);
}

Napi::Value RecordMergeWrap::dropped(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const RecordMerge::Dropped& dropped = merge_->dropped(info[0].As<Napi::Number>().Uint32Value());
  Napi::Object value = Napi::Object::New(env);
  value.Set("packets", toNumber(env, dropped.packets));
  value.Set("bytes", toNumber(env, dropped.bytes));
  return value;
}

}  // namespace capfleet::binding
