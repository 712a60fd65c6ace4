#include "compressor_wrap.h"

#include "error_value.h"

namespace capfleet::binding {
namespace {

Compression compressionOf(const Napi::CallbackInfo& info) {
  return {.codec = static_cast<Codec>(info[0].As<Napi::Number>().Int32Value()),
          .level = info[1].As<Napi::Number>().Int32Value()};
}

}  // namespace

Napi::Function CompressorWrap::define(Napi::Env env) {
  return DefineClass(
      env, "Compressor",
      {InstanceMethod<&CompressorWrap::write>("write"),
       InstanceMethod<&CompressorWrap::flush>("flush"), InstanceMethod<&CompressorWrap::end>("end"),
       InstanceMethod<&CompressorWrap::next>("next"),
       InstanceMethod<&CompressorWrap::close>("close")});
}

/// It has its own slabs, so that all of them are freed when it ends.
CompressorWrap::CompressorWrap(const Napi::CallbackInfo& info)
    : ObjectWrap(info),
      mainThread_(AddonData::of(info.Env())->mainThread()),
      compressor_(StreamCompressor::create(compressionOf(info), WorkerPool::shared(),
                                           std::make_shared<BufferPool>(),
                                           info[2].As<Napi::Boolean>().Value())) {}

CompressorWrap::~CompressorWrap() {
  if (compressor_) compressor_->close();
}

Napi::Value CompressorWrap::write(const Napi::CallbackInfo& info) {
  const auto bytes = info[0].As<Napi::Uint8Array>();
  const size_t written = compressor_->write({bytes.Data(), bytes.ByteLength()});
  return Napi::Number::New(info.Env(), static_cast<double>(written));
}

void CompressorWrap::flush(const Napi::CallbackInfo&) { compressor_->flush(); }

void CompressorWrap::end(const Napi::CallbackInfo&) { compressor_->end(); }

Napi::Value CompressorWrap::next(const Napi::CallbackInfo& info) {
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  // This object, and the process, must stay alive until the answer.
  mainThread_->beginOperation();
  Ref();
  compressor_->next([this, mainThread = mainThread_, deferred](StreamCompressor::Answer answer) {
    mainThread->run([this, deferred, answer = std::move(answer)](Napi::Env env) {
      settle(env, deferred, answer);
    });
  });
  return deferred.Promise();
}

void CompressorWrap::settle(Napi::Env env, Napi::Promise::Deferred deferred,
                            const StreamCompressor::Answer& answer) {
  mainThread_->endOperation();
  if (!answer) {
    deferred.Reject(toErrorValue(env, answer.error()));
  } else if (*answer == nullptr) {
    deferred.Resolve(env.Undefined());
  } else {
    deferred.Resolve(buffers_.partOf(env, *answer));
  }
  Unref();
}

void CompressorWrap::close(const Napi::CallbackInfo&) {
  compressor_->close();
  // Its memory must not wait for the garbage collector to find this object.
  compressor_.reset();
  buffers_.forgetAll();
}

}  // namespace capfleet::binding
