// How the bytes of a download are compressed.
#pragma once

#include <cstdint>

namespace capfleet {

enum class Codec {
  kNone,
  kGzip,  ///< members one after the other, each about 1 MiB before compression
  kZstd,  ///< frames one after the other, each at most 8 MiB before compression
};

/// Level of gzip: 1 by ISA-L, 2 to 9 by libdeflate.
/// Level of zstd: as in libzstd, -5 to 22.
struct Compression {
  Codec codec = Codec::kNone;
  int level = 0;
};

}  // namespace capfleet
