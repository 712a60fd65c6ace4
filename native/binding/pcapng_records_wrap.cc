#include "pcapng_records_wrap.h"

#include <functional>
#include <vector>

namespace capfleet::binding {
namespace {

std::span<uint8_t> spanOf(const Napi::Value& bytes) {
  auto array = bytes.As<Napi::Uint8Array>();
  return {array.Data(), array.ByteLength()};
}

std::vector<uint8_t> copyOf(const Napi::Value& bytes) {
  const auto span = spanOf(bytes);
  return {span.begin(), span.end()};
}

uint32_t toUint32(const Napi::Value& value) { return value.As<Napi::Number>().Uint32Value(); }

Napi::Value toNumber(Napi::Env env, uint64_t value) {
  return Napi::Number::New(env, static_cast<double>(value));
}

}  // namespace

Napi::Function PcapngRecordsWrap::define(Napi::Env env) {
  return DefineClass(env, "PcapngRecords",
                     {InstanceMethod<&PcapngRecordsWrap::show>("show"),
                      InstanceMethod<&PcapngRecordsWrap::advance>("advance"),
                      InstanceMethod<&PcapngRecordsWrap::recordsAt>("recordsAt"),
                      InstanceMethod<&PcapngRecordsWrap::recordsBytes>("recordsBytes"),
                      InstanceMethod<&PcapngRecordsWrap::records>("records"),
                      InstanceMethod<&PcapngRecordsWrap::addInterface>("addInterface"),
                      InstanceMethod<&PcapngRecordsWrap::block>("block"),
                      InstanceMethod<&PcapngRecordsWrap::statisticsTag>("statisticsTag"),
                      InstanceMethod<&PcapngRecordsWrap::remarked>("remarked"),
                      InstanceMethod<&PcapngRecordsWrap::failure>("failure"),
                      InstanceMethod<&PcapngRecordsWrap::isBetweenBlocks>("isBetweenBlocks")});
}

void PcapngRecordsWrap::show(const Napi::CallbackInfo& info) {
  shown_ = Napi::Persistent(info[0].As<Napi::Object>());
  bytes_ = spanOf(info[0]);
  records_.show(bytes_);
}

Napi::Value PcapngRecordsWrap::advance(const Napi::CallbackInfo& info) {
  const auto state = records_.advance();
  if (state == PcapngRecords::State::kDry) {
    shown_.Reset();
    bytes_ = {};
  }
  return Napi::Number::New(info.Env(), static_cast<int>(state));
}

Napi::Value PcapngRecordsWrap::recordsAt(const Napi::CallbackInfo& info) {
  const uint8_t* const at = records_.records().data();
  if (std::less()(at, bytes_.data()) || !std::less()(at, bytes_.data() + bytes_.size()))
    return info.Env().Undefined();
  return toNumber(info.Env(), static_cast<uint64_t>(at - bytes_.data()));
}

Napi::Value PcapngRecordsWrap::recordsBytes(const Napi::CallbackInfo& info) {
  return toNumber(info.Env(), records_.records().size());
}

Napi::Value PcapngRecordsWrap::records(const Napi::CallbackInfo& info) {
  const auto records = records_.records();
  return Napi::Buffer<uint8_t>::Copy(info.Env(), records.data(), records.size());
}

void PcapngRecordsWrap::addInterface(const Napi::CallbackInfo& info) {
  records_.addInterface(toUint32(info[0]));
}

Napi::Value PcapngRecordsWrap::block(const Napi::CallbackInfo& info) {
  const auto block = records_.block();
  return Napi::Buffer<uint8_t>::Copy(info.Env(), block.data(), block.size());
}

Napi::Value PcapngRecordsWrap::statisticsTag(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), records_.statisticsTag());
}

Napi::Value PcapngRecordsWrap::remarked(const Napi::CallbackInfo& info) {
  const auto& [tag, timestampNs] = records_.remark();
  Napi::Object value = Napi::Object::New(info.Env());
  value.Set("tag", Napi::Number::New(info.Env(), tag));
  value.Set("ns", Napi::BigInt::New(info.Env(), timestampNs));
  return value;
}

Napi::Value PcapngRecordsWrap::failure(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), records_.failure());
}

Napi::Value PcapngRecordsWrap::isBetweenBlocks(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), records_.isBetweenBlocks());
}

Napi::Function MergedInterfacesWrap::define(Napi::Env env) {
  return DefineClass(env, "MergedInterfaces",
                     {InstanceMethod<&MergedInterfacesWrap::add>("add"),
                      InstanceMethod<&MergedInterfacesWrap::describe>("describe"),
                      InstanceMethod<&MergedInterfacesWrap::remark>("remark"),
                      InstanceMethod<&MergedInterfacesWrap::at>("at")});
}

Napi::Value MergedInterfacesWrap::add(const Napi::CallbackInfo& info) {
  std::string name = info[0].As<Napi::String>();
  const uint32_t id = interfaces_.add(std::move(name), toUint32(info[1]), copyOf(info[2]));
  return Napi::Number::New(info.Env(), id);
}

void MergedInterfacesWrap::describe(const Napi::CallbackInfo& info) {
  interfaces_.at(toUint32(info[0])).description = copyOf(info[1]);
}

void MergedInterfacesWrap::remark(const Napi::CallbackInfo& info) {
  bool isLossless = false;
  const int64_t atNs = info[1].As<Napi::BigInt>().Int64Value(&isLossless);
  interfaces_.remark(toUint32(info[0]), {atNs, copyOf(info[2])});
}

Napi::Value MergedInterfacesWrap::at(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const MergedInterfaces::Interface& one = interfaces_.at(toUint32(info[0]));
  Napi::Object value = Napi::Object::New(env);
  value.Set("number", one.number ? toNumber(env, *one.number) : env.Undefined());
  value.Set("packets", toNumber(env, one.packets));
  value.Set("duplicates", toNumber(env, one.duplicates));
  return value;
}

}  // namespace capfleet::binding
