// Sources that decode compressed data of another source, which they own.
#pragma once

#include <memory>

#include "os/byte_source.h"

namespace capfleet {

/// Decodes gzip, one member or more. read() fails with kBadCaptureFile on damaged data, on a wrong
/// checksum, and if the input ends inside a member; data decoded before that is returned first.
/// Zeros after the last member are padding, other bytes there are damage.
std::unique_ptr<ByteSource> decodeGzip(std::unique_ptr<ByteSource> input);

/// Decodes zstd, one frame or more, and skips skippable frames. Accepts windows up to 128 MiB
/// (windowLog 27) and then uses that much memory. read() fails with kBadCaptureFile on damaged data
/// and if the input ends inside a frame; data decoded before that is returned first.
std::unique_ptr<ByteSource> decodeZstd(std::unique_ptr<ByteSource> input);

/// Decode xz (not the older .lzma), lz4 (not its legacy format) and bzip2, one stream or more, with
/// at most 128 MiB of memory (xz) or a few MiB. read() fails as in decodeZstd(), and if xz needs
/// more memory.
std::unique_ptr<ByteSource> decodeXz(std::unique_ptr<ByteSource> input);
std::unique_ptr<ByteSource> decodeLz4(std::unique_ptr<ByteSource> input);
std::unique_ptr<ByteSource> decodeBzip2(std::unique_ptr<ByteSource> input);

}  // namespace capfleet
