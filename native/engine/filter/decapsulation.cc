#include "filter/decapsulation.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "filter/capwap.h"
#include "os/byte_order.h"
#include "packet/link_header.h"

namespace capfleet {
namespace {

constexpr size_t kAddressBytes = 12;
constexpr size_t kEthernetBytes = 14;
constexpr size_t kSnapBytes = 8;
constexpr int kMaxLayers = 16;
constexpr int kMaxLabels = 16;
constexpr int kMaxExtensionHeaders = 8;
/// Values of the type field up to this are the length of an 802.3 frame.
constexpr uint16_t kMaxFrameLength = 1500;

enum EtherType : uint16_t {
  kArpType = 0x0806,
  kErspan3Type = 0x22eb,
  kBridgedEthernet = 0x6558,
  kVlanType = 0x8100,
  kPppType = 0x880b,
  kMplsType = 0x8847,
  kMplsMulticast = 0x8848,
  kPppoeSession = 0x8864,
  kErspanType = 0x88be,
  kServiceVlan = 0x88a8,
  kLldpType = 0x88cc,
  kMetadataType = 0x8909,
  kVnTagType = 0x8926,
  kOldVlan1 = 0x9100,
  kOldVlan2 = 0x9200,
  kOldVlan3 = 0x9300,
  kVendorATime = 0xd28b,
};

enum UdpPort : uint16_t {
  kGtpUser = 2152,
  kVxlan = 4789,
  kVxlanGpe = 4790,
  kCapwapData = 5247,
  kGeneve = 6081,
  kLinuxVxlan = 8472,
};

enum IpProtocol : uint8_t { kHopByHop = 0, kIpInIp = 4, kUdp = 17, kIpv6InIp = 41, kRouting = 43 };
enum MoreIpProtocol : uint8_t { kFragment = 44, kGre = 47, kAuthentication = 51, kOptions = 60 };
/// Its header is as long as that of UDP and has the same ports. CAPWAP prefers it over IPv6.
constexpr uint8_t kUdpLite = 136;

/// Whether an Ethernet frame inside MPLS without control word is recognized by this type.
bool isCommonType(uint16_t type) {
  switch (type) {
    case kIpv4Type:
    case kArpType:
    case kVlanType:
    case kIpv6Type:
    case kMplsType:
    case kMplsMulticast:
    case kPppoeSession:
    case kServiceVlan:
    case kLldpType:
      return true;
    default:
      return false;
  }
}

/// Walks from header to header, and notes how far headers can be removed. Each method reads one
/// header at offset_, and either sets what follows (next_, offset_, and frame_ if that is a frame)
/// or leaves next_ at kEnd.
class Peeler {
 public:
  /// A link-layer header up to its type field, possibly with tags; a type; and what the type refers
  /// to. What is between the type field and the payload is not part of the frame.
  struct Frame {
    size_t start;
    size_t typeAt;
    uint16_t type;
    size_t payload;
  };

  Peeler(std::span<const uint8_t> captured, const LinkHeader& link, HeaderKinds removed)
      : bytes_(captured.data()), end_(captured.size()), link_(link), removed_(removed) {
    if (link.isRawIp) {
      if (has(0, 1)) startIp(byteAt(0) >> 4);
    } else if (has(0, link.bytes)) {
      frame_ = {0, link.typeAt, wordAt(link.typeAt), link.bytes};
      goTo(Next::kFrame, link.bytes);
    }
  }

  /// The frame without the headers that can be removed, or null if none can.
  std::optional<Frame> innermost() {
    for (int layer = 0; layer < kMaxLayers && next_ != Next::kEnd; layer++) step();
    return reached_;
  }

  /// The frame that is being read; before innermost() the whole one, or null if it is too short.
  std::optional<Frame> current() const {
    if (next_ == Next::kEnd) return std::nullopt;
    return frame_;
  }

 private:
  enum class Next {
    kEnd,
    kFrame,
    kIpv4,
    kIpv6,
    kGre,
    kUdp,
    kMpls,
    kPpp,
    kMetadata,
    kCapwap,
    kWlan
  };

  void step() {
    const Next layer = next_;
    next_ = Next::kEnd;
    left_ = layer == Next::kMpls ? kLabels : kTunnels;
    switch (layer) {
      case Next::kFrame:
        return readFrame();
      case Next::kIpv4:
        return readIpv4();
      case Next::kIpv6:
        return readIpv6();
      case Next::kGre:
        return readGre();
      case Next::kUdp:
        return readUdp();
      case Next::kMpls:
        return readMpls();
      case Next::kPpp:
        return readPpp();
      case Next::kMetadata:
        return readTunnelledMetadata();
      case Next::kCapwap:
        return readCapwap();
      case Next::kWlan:
        return readWlan();
      case Next::kEnd:
        return;
    }
  }

  bool has(size_t offset, size_t count) const { return offset <= end_ && count <= end_ - offset; }
  std::span<const uint8_t> from(size_t offset) const {
    if (offset > end_) return {};
    return {bytes_ + offset, end_ - offset};
  }
  uint8_t byteAt(size_t offset) const { return bytes_[offset]; }
  uint16_t wordAt(size_t offset) const { return loadBe16(bytes_ + offset); }

  void goTo(Next next, size_t offset) {
    next_ = next;
    offset_ = offset;
  }

  bool removes(HeaderKinds kind) const { return (removed_ & kind) != 0; }

  /// Notes that frame_ can take the place of the packet, if headers of this kind are removed.
  void reach(HeaderKinds kind) {
    if (!removes(kind) || !isReachable_) return;
    if (link_.isRawIp && !isAllowedIp()) return;
    reached_ = frame_;
  }

  /// Whether the frame has what a raw IP packet can be replaced by.
  bool isAllowedIp() const {
    const unsigned version = frame_.type == kIpv4Type ? 4 : frame_.type == kIpv6Type ? 6 : 0;
    if (version == 0 || !has(frame_.payload, 1) || byteAt(frame_.payload) >> 4 != version) {
      return false;
    }
    return link_.onlyVersion == 0 || link_.onlyVersion == version;
  }

  /// Whether the payload follows the header as it was captured.
  bool isWhole() const {
    const bool isLinkHeader = frame_.typeAt == frame_.start + link_.typeAt;
    const size_t end = isLinkHeader ? frame_.start + link_.bytes : frame_.typeAt + 2;
    return frame_.payload == end;
  }

  /// A tag whose last two bytes, in front of `payload`, are the type of what follows. One that is
  /// not removed becomes part of the header, unless something was removed in front of it: then the
  /// rest of the frame stays.
  void passTag(HeaderKinds kind, size_t payload) {
    const size_t typeAt = payload - 2;
    if (!has(typeAt, 2)) return;
    if (!removes(kind)) {
      isReachable_ = isReachable_ && isWhole();
      frame_.typeAt = typeAt;
    }
    frame_.type = wordAt(typeAt);
    frame_.payload = payload;
    reach(kind);
    goTo(Next::kFrame, payload);
  }

  /// A packet inside a tunnel or labels, without a link-layer header of its own: it gets the
  /// nearest one around it, which loses its tags with a tunnel.
  void reachPacket(uint16_t type, size_t payload) {
    if (left_ == kTunnels) startHeader(frame_.start);
    isReachable_ = isReachable_ && removes(left_);
    frame_.type = type;
    frame_.payload = payload;
    reach(left_);
  }

  void startHeader(size_t start) {
    frame_.start = start;
    frame_.typeAt = start + link_.typeAt;
    isReachable_ = removes(left_);
  }

  void reachEthernet(size_t offset) {
    if (!has(offset, kEthernetBytes)) return;
    // Only a packet captured with an Ethernet header is replaced by one.
    startHeader(link_.bytes == kEthernetBytes ? offset : 0);
    frame_.type = wordAt(offset + kAddressBytes);
    frame_.payload = offset + kEthernetBytes;
    reach(left_);
    goTo(Next::kFrame, frame_.payload);
  }

  void reachLabels(uint16_t type, size_t offset) {
    reachPacket(type, offset);
    goTo(Next::kMpls, offset);
  }

  /// The packet itself, if it has no link-layer header.
  void startIp(unsigned version) {
    if (version != 4 && version != 6) return;
    frame_ = {0, 0, version == 4 ? kIpv4Type : kIpv6Type, 0};
    goTo(Next::kFrame, 0);
  }

  /// An IP packet inside a tunnel: its header is checked before anything is stripped for it.
  void reachIp(unsigned version, size_t offset) {
    const bool isIpv4 = version == 4;
    if (!has(offset, isIpv4 ? 20 : 40) || byteAt(offset) >> 4 != version) return;
    if (isIpv4 && (byteAt(offset) & 15) < 5) return;
    reachPacket(isIpv4 ? kIpv4Type : kIpv6Type, offset);
    goTo(isIpv4 ? Next::kIpv4 : Next::kIpv6, offset);
  }

  /// IPv4 or IPv6, according to the first four bits; MPLS and GTP-U do not say.
  void reachAnyIp(size_t offset) {
    if (!has(offset, 1)) return;
    const unsigned version = byteAt(offset) >> 4;
    if (version == 4 || version == 6) reachIp(version, offset);
  }

  /// What GRE and GENEVE carry under an EtherType.
  void reachTunnelled(uint16_t type, size_t offset) {
    switch (type) {
      case kIpv4Type:
        return reachIp(4, offset);
      case kIpv6Type:
        return reachIp(6, offset);
      case kBridgedEthernet:
        return reachEthernet(offset);
      case kMplsType:
      case kMplsMulticast:
        return reachLabels(type, offset);
      case kMetadataType:
        return goTo(Next::kMetadata, offset);
      default:
        return;
    }
  }

  void readFrame() {
    const size_t at = frame_.payload;
    switch (frame_.type) {
      case kIpv4Type:
        if (removes(kTunnels)) goTo(Next::kIpv4, at);
        return;
      case kIpv6Type:
        if (removes(kTunnels)) goTo(Next::kIpv6, at);
        return;
      case kVlanType:
      case kServiceVlan:
      case kOldVlan1:
      case kOldVlan2:
      case kOldVlan3:
        return passTag(kTags, at + 4);
      case kVnTagType:
        return passTag(kTags, at + 6);
      case kMplsType:
      case kMplsMulticast:
        if (removes(kLabels | kTunnels)) goTo(Next::kMpls, at);
        return;
      case kVendorATime:
        return readVendorATime(at);
      case kMetadataType:
        return readMetadata(at);
      case kPppoeSession:
        if (removes(kTunnels) && has(at, 6) && byteAt(at) == 0x11 && byteAt(at + 1) == 0)
          goTo(Next::kPpp, at + 6);
        return;
      default:
        if (frame_.type <= kMaxFrameLength) readSnap(at);
    }
  }

  /// Subtype, version, time of 8 or 6 bytes, the original type.
  void readVendorATime(size_t at) {
    if (!has(at, 4) || wordAt(at) != 1) return;
    const unsigned format = byteAt(at + 3) >> 4;
    if (format != 1 && format != 2) return;
    const size_t type = at + (format == 1 ? 12 : 10);
    passTag(kOtherHeaders, type + 2);
  }

  /// A security group tag: version 1, one option, and the original type. That type comes last in a
  /// frame, and first in a tunnel.
  static constexpr size_t kMetadataBytes = 8;
  bool isMetadata(size_t at, size_t version) const {
    return has(at, kMetadataBytes) && byteAt(version) == 1 && byteAt(version + 1) == 1;
  }
  void readMetadata(size_t at) {
    if (isMetadata(at, at)) passTag(kOtherHeaders, at + kMetadataBytes);
  }
  void readTunnelledMetadata() {
    if (!isMetadata(offset_, offset_ + 2)) return;
    reachTunnelled(wordAt(offset_), offset_ + kMetadataBytes);
  }

  bool isSnap(size_t at) const {
    constexpr uint8_t kSnap[] = {0xaa, 0xaa, 3, 0, 0, 0};
    return has(at, kSnapBytes) && std::memcmp(bytes_ + at, kSnap, sizeof kSnap) == 0;
  }

  /// The header is removed with any that follows it: a frame that becomes shorter could not keep
  /// its length field.
  void readSnap(size_t at) {
    if (!isSnap(at)) return;
    frame_.type = wordAt(at + kSnapBytes - 2);
    frame_.payload = at + kSnapBytes;
    reach(kOtherHeaders);
    goTo(Next::kFrame, frame_.payload);
  }

  void readIpv4() {
    const size_t at = offset_;
    if (!has(at, 20) || byteAt(at) >> 4 != 4) return;
    const size_t headerBytes = size_t{4} * (byteAt(at) & 15);
    if (headerBytes < 20 || !has(at, headerBytes)) return;
    // A total length of 0 means a packet above 64 KiB that the NIC has not segmented yet.
    const size_t totalLength = wordAt(at + 2);
    if (totalLength >= headerBytes) end_ = std::min(end_, at + totalLength);
    const bool isLaterFragment = (wordAt(at + 6) & 0x1fff) != 0;
    if (!isLaterFragment) readIpPayload(byteAt(at + 9), at + headerBytes);
  }

  void readIpv6() {
    const size_t at = offset_;
    if (!has(at, 40) || byteAt(at) >> 4 != 6) return;
    const size_t payloadLength = wordAt(at + 4);
    if (payloadLength != 0) end_ = std::min(end_, at + 40 + payloadLength);
    uint8_t protocol = byteAt(at + 6);
    size_t offset = at + 40;
    for (int i = 0; i < kMaxExtensionHeaders; i++) {
      if (!has(offset, 8)) return;
      size_t headerBytes = 8;
      if (protocol == kFragment) {
        if ((wordAt(offset + 2) & 0xfff8) != 0) return;
      } else if (protocol == kAuthentication) {
        headerBytes = (size_t{byteAt(offset + 1)} + 2) * 4;
      } else if (protocol == kHopByHop || protocol == kRouting || protocol == kOptions) {
        headerBytes = (size_t{byteAt(offset + 1)} + 1) * 8;
      } else {
        break;
      }
      protocol = byteAt(offset);
      offset += headerBytes;
    }
    readIpPayload(protocol, offset);
  }

  void readIpPayload(uint8_t protocol, size_t offset) {
    if (protocol == kIpInIp) return reachIp(4, offset);
    if (protocol == kIpv6InIp) return reachIp(6, offset);
    if (protocol == kGre) return goTo(Next::kGre, offset);
    if (protocol == kUdp || protocol == kUdpLite) return goTo(Next::kUdp, offset);
  }

  void readGre() {
    constexpr unsigned kChecksum = 0x8000, kRoutingBit = 0x4000, kKey = 0x2000, kSequence = 0x1000;
    constexpr unsigned kAcknowledgement = 0x0080, kVersion = 7;
    if (!has(offset_, 4)) return;
    const unsigned flags = wordAt(offset_);
    const uint16_t type = wordAt(offset_ + 2);
    const unsigned version = flags & kVersion;
    if (version > 1 || (flags & kRoutingBit) != 0) return;
    size_t inner = offset_ + 4;
    for (const unsigned optional : {kChecksum, kKey, kSequence}) {
      if ((flags & optional) != 0) inner += 4;
    }
    if (version == 1) {
      if ((flags & kAcknowledgement) != 0) inner += 4;
      if (type == kPppType && (flags & kKey) != 0) goTo(Next::kPpp, inner);
      return;
    }
    if (type == kErspan3Type) return readErspan3(inner);
    if (type != kErspanType) return reachTunnelled(type, inner);
    // Type I has no header of its own, and then GRE has no sequence number.
    if ((flags & kSequence) == 0) return reachEthernet(inner);
    if (has(inner, 8) && byteAt(inner) >> 4 == 1) reachEthernet(inner + 8);
  }

  void readErspan3(size_t at) {
    constexpr size_t kHeaderBytes = 12, kSubheaderBytes = 8;
    if (!has(at, kHeaderBytes) || byteAt(at) >> 4 != 2) return;
    const unsigned word = wordAt(at + 10);
    const unsigned frameType = (word >> 10) & 31;
    const size_t inner = at + kHeaderBytes + ((word & 1) != 0 ? kSubheaderBytes : 0);
    if (frameType == 0) return reachEthernet(inner);
    if (frameType == 2) return reachAnyIp(inner);
  }

  void readUdp() {
    const size_t payload = offset_ + 8;
    if (!has(offset_, 16)) return;
    const uint16_t source = wordAt(offset_);
    const uint16_t destination = wordAt(offset_ + 2);
    switch (destination) {
      case kVxlan:
      case kLinuxVxlan:
        if ((byteAt(payload) & 8) != 0) reachEthernet(payload + 8);
        return;
      case kVxlanGpe:
        return readVxlanGpe(payload);
      case kGeneve:
        if (byteAt(payload) >> 6 == 0) {
          reachTunnelled(wordAt(payload + 2), payload + 8 + size_t{4} * (byteAt(payload) & 63));
        }
        return;
      case kGtpUser:
        return readGtp(payload);
      case kCapwapData:
        return goTo(Next::kCapwap, payload);
      default:
        if (source == kGtpUser) return readGtp(payload);
        if (source == kCapwapData) return goTo(Next::kCapwap, payload);
    }
  }

  void readVxlanGpe(size_t at) {
    if ((byteAt(at) & 8) == 0) return;
    switch (byteAt(at + 3)) {
      case 1:
        return reachIp(4, at + 8);
      case 2:
        return reachIp(6, at + 8);
      case 3:
        return reachEthernet(at + 8);
      case 5:
        return reachLabels(kMplsType, at + 8);
      default:
        return;
    }
  }

  /// GTP-U version 1, a user packet.
  void readGtp(size_t at) {
    constexpr unsigned kExtension = 4, kSequence = 2, kPduNumber = 1;
    constexpr uint8_t kUserPacket = 255;
    const unsigned flags = byteAt(at);
    if (flags >> 4 != 3 || byteAt(at + 1) != kUserPacket) return;
    size_t offset = at + 8;
    if ((flags & (kExtension | kSequence | kPduNumber)) != 0) {
      if (!has(offset, 4)) return;
      offset += 4;
    }
    if ((flags & kExtension) != 0) {
      for (int i = 0; byteAt(offset - 1) != 0; i++) {
        if (i == kMaxExtensionHeaders || !has(offset, 4)) return;
        const size_t extensionBytes = size_t{4} * byteAt(offset);
        if (extensionBytes == 0 || !has(offset, extensionBytes)) return;
        offset += extensionBytes;
      }
    }
    reachAnyIp(offset);
  }

  void readCapwap() {
    const std::optional<CapwapFrame> frame = findCapwapFrame(from(offset_));
    if (!frame) return;
    const size_t inner = offset_ + frame->offset;
    if (!frame->isWlan) return reachEthernet(inner);
    goTo(Next::kWlan, inner);
  }

  void readWlan() {
    const std::optional<size_t> headerBytes = wlanHeaderBytes(from(offset_));
    if (!headerBytes) return;
    const size_t at = offset_ + *headerBytes;
    if (!isSnap(at)) return;
    reachPacket(wordAt(at + kSnapBytes - 2), at + kSnapBytes);
    goTo(Next::kFrame, frame_.payload);
  }

  void readMpls() {
    size_t offset = offset_;
    for (int i = 0;; i++) {
      if (i == kMaxLabels || !has(offset, 4)) return;
      const bool isBottom = (byteAt(offset + 2) & 1) != 0;
      offset += 4;
      if (isBottom) break;
    }
    if (!has(offset, 1)) return;
    switch (byteAt(offset) >> 4) {
      case 4:
      case 6:
        return reachAnyIp(offset);
      case 0:  // a control word
        return reachEthernet(offset + 4);
      case 1:  // operation and maintenance
        return;
      default:
        if (has(offset, kEthernetBytes) && isCommonType(wordAt(offset + kAddressBytes))) {
          reachEthernet(offset);
        }
    }
  }

  void readPpp() {
    size_t at = offset_;
    if (has(at, 2) && wordAt(at) == 0xff03) at += 2;  // HDLC's address and control
    if (!has(at, 2)) return;
    const bool isShort = (byteAt(at) & 1) != 0;
    const unsigned protocol = isShort ? byteAt(at) : wordAt(at);
    at += isShort ? 1 : 2;
    if (protocol == 0x0021) return reachIp(4, at);
    if (protocol == 0x0057) return reachIp(6, at);
    if (protocol == 0x0281) return reachLabels(kMplsType, at);
  }

  const uint8_t* bytes_;
  size_t end_;  ///< end of the captured bytes, or of the innermost IP packet if that is earlier
  const LinkHeader link_;
  const HeaderKinds removed_;
  Next next_ = Next::kEnd;
  size_t offset_ = 0;
  HeaderKinds left_ = kTunnels;  ///< the kind of the header that is being read
  Frame frame_{};
  /// Whether frame_ can take the place of the packet: nothing in front of it has to stay that would
  /// not be in its header.
  bool isReachable_ = true;
  std::optional<Frame> reached_;
};

StrippedPacket unchanged(const PacketView& packet) {
  StrippedPacket whole;
  whole.payload = packet.captured;
  whole.originalLength = packet.originalLength;
  return whole;
}

}  // namespace

StrippedPacket withoutHeaders(const PacketView& packet, HeaderKinds removed) {
  const std::optional<LinkHeader> link = linkHeaderOf(packet.linkTypeWord);
  if (!link || removed == 0) return unchanged(packet);
  const std::span<const uint8_t> captured = packet.captured;
  const std::optional<Peeler::Frame> frame = Peeler(captured, *link, removed).innermost();
  if (!frame) return unchanged(packet);

  StrippedPacket stripped;
  stripped.payload = captured.subspan(frame->payload);
  const size_t typeAt = frame->typeAt;
  if (link->isRawIp) {
    // There is no header to keep.
  } else if (frame->payload == typeAt + 2 && frame->type == loadBe16(&captured[typeAt])) {
    stripped.payload = captured.subspan(frame->start);
  } else {
    stripped.head = captured.subspan(frame->start, typeAt - frame->start);
    stripped.type = {static_cast<uint8_t>(frame->type >> 8), static_cast<uint8_t>(frame->type)};
    stripped.typeBytes = 2;
    const bool isLinkType = typeAt == frame->start + link->typeAt;
    const size_t restBytes = isLinkType ? link->bytes - link->typeAt - 2 : 0;
    stripped.headRest = captured.subspan(typeAt + 2, restBytes);
  }
  const auto removedBytes = static_cast<uint32_t>(captured.size() - stripped.size());
  // A file may contain an original length below the captured one.
  stripped.originalLength = packet.originalLength - std::min(packet.originalLength, removedBytes);
  return stripped;
}

std::optional<NetworkPacket> networkPacketOf(const PacketView& packet) {
  const std::optional<LinkHeader> link = linkHeaderOf(packet.linkTypeWord);
  if (!link) return std::nullopt;
  Peeler peeler(packet.captured, *link, kTags | kLabels | kOtherHeaders);
  const std::optional<Peeler::Frame> whole = peeler.current();
  if (!whole) return std::nullopt;
  const Peeler::Frame frame = peeler.innermost().value_or(*whole);
  return NetworkPacket{frame.type, packet.captured.subspan(frame.payload)};
}

void StrippedPacket::store(uint8_t* out, size_t bytes) const {
  const std::span<const uint8_t> pieces[] = {head, {type.data(), typeBytes}, headRest, payload};
  for (const std::span<const uint8_t>& piece : pieces) {
    const size_t count = std::min(piece.size(), bytes);
    if (count > 0) std::memcpy(out, piece.data(), count);
    out += count;
    bytes -= count;
  }
}

FilterView decapsulate(const PacketView& packet, DecapScratch& scratch) {
  const StrippedPacket stripped = withoutHeaders(packet, kAllHeaders);
  if (stripped.typeBytes == 0) return {stripped.payload, stripped.originalLength};
  const size_t length = stripped.size();
  if (scratch.bytes.size() < length) scratch.bytes.resize(length);
  stripped.store(scratch.bytes.data(), length);
  return {{scratch.bytes.data(), length}, stripped.originalLength};
}

}  // namespace capfleet
