#include "import/gzip_source.h"

#include <isa-l/igzip_lib.h>

#include <optional>

namespace capfleet {

namespace {

constexpr uint32_t kInputBufferBytes = 256 * 1024;
constexpr uint8_t kMemberFirstByte = 0x1F;

Error damaged(const char* what) { return {Code::kBadCaptureFile, what}; }

}  // namespace

struct GzipSource::State {
  std::unique_ptr<ByteSource> input;
  std::unique_ptr<uint8_t[]> buffer = std::make_unique_for_overwrite<uint8_t[]>(kInputBufferBytes);
  inflate_state inflate{};
  bool inputEnded = false;
  bool memberEnded = false;
  std::optional<Error> failure;  ///< for the next read(), after what was decoded

  Status refill();
  Result<bool> findNextMember();
  void step();
};

Status GzipSource::State::refill() {
  if (inflate.avail_in > 0 || inputEnded) return ok();
  const auto count = input->read({buffer.get(), kInputBufferBytes});
  if (!count) return count.error();
  inflate.next_in = buffer.get();
  inflate.avail_in = static_cast<uint32_t>(*count);
  inputEnded = *count == 0;
  return ok();
}

/// Moves past padding to the next member. False at the end of the input.
Result<bool> GzipSource::State::findNextMember() {
  for (;;) {
    if (auto status = refill(); !status) return status.error();
    if (inflate.avail_in == 0) return false;
    if (*inflate.next_in != 0) break;
    ++inflate.next_in;
    --inflate.avail_in;
  }
  if (*inflate.next_in != kMemberFirstByte) {
    return damaged("other bytes follow the gzip data");
  }
  isal_inflate_reset(&inflate);
  memberEnded = false;
  return true;
}

void GzipSource::State::step() {
  switch (isal_inflate(&inflate)) {
    case ISAL_DECOMP_OK:
    case ISAL_END_INPUT:
      break;
    case ISAL_INCORRECT_CHECKSUM:
      failure = damaged("the gzip checksum does not match");
      return;
    default:
      failure = damaged("the gzip data is damaged");
      return;
  }
  memberEnded = inflate.block_state == ISAL_BLOCK_FINISH;
}

GzipSource::GzipSource(std::unique_ptr<ByteSource> input) : state_(std::make_unique<State>()) {
  state_->input = std::move(input);
  isal_inflate_init(&state_->inflate);
  state_->inflate.crc_flag = ISAL_GZIP;
}

GzipSource::~GzipSource() = default;

Result<size_t> GzipSource::read(std::span<uint8_t> out) {
  State& state = *state_;
  for (;;) {
    if (state.failure) return *state.failure;
    if (state.memberEnded) {
      const auto found = state.findNextMember();
      if (!found) return found.error();
      if (!*found) return size_t{0};
    }
    if (auto status = state.refill(); !status) return status.error();
    state.inflate.next_out = out.data();
    state.inflate.avail_out = static_cast<uint32_t>(out.size());
    state.step();
    if (const size_t count = out.size() - state.inflate.avail_out; count > 0) return count;
    if (state.inputEnded && !state.memberEnded && !state.failure) {
      state.failure = damaged("the gzip data ends early");
    }
  }
}

uint64_t GzipSource::inputBytes() const { return state_->input->inputBytes(); }

}  // namespace capfleet
