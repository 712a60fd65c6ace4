#include "segment_values.h"

namespace capfleet::binding {

Napi::Object toSegment(Napi::Env env, const SegmentSummary& from) {
  Napi::Object segment = Napi::Object::New(env);
  segment.Set("number", Napi::Number::New(env, from.number));
  segment.Set("minNs", Napi::BigInt::New(env, from.minNs));
  segment.Set("maxNs", Napi::BigInt::New(env, from.maxNs));
  segment.Set("packets", Napi::BigInt::New(env, from.packets));
  segment.Set("bytes", Napi::BigInt::New(env, from.bytes));
  segment.Set("sideBytes", Napi::Number::New(env, static_cast<double>(from.sideBytes)));
  segment.Set("checksum", Napi::Number::New(env, from.checksum));
  segment.Set("isFlat", Napi::Boolean::New(env, from.isFlat));
  return segment;
}

Napi::Object toStream(Napi::Env env, uint32_t port, const PcapFileHeader& header,
                      const std::vector<SegmentSummary>& segments) {
  Napi::Array list = Napi::Array::New(env, segments.size());
  for (uint32_t i = 0; i < segments.size(); i++) list.Set(i, toSegment(env, segments[i]));
  Napi::Object stream = Napi::Object::New(env);
  stream.Set("port", Napi::Number::New(env, port));
  stream.Set("linkType", Napi::Number::New(env, header.linkTypeWord));
  stream.Set("snaplen", Napi::Number::New(env, header.snaplen));
  stream.Set("segments", list);
  return stream;
}

}  // namespace capfleet::binding
