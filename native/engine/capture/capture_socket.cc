#include "capture/capture_socket.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>
#include <utility>

#include "capture/nic_clock.h"
#include "packet/pcap_format.h"

namespace capfleet {

namespace {

/// Large blocks cause few wake-ups; one holds the largest packet.
constexpr uint32_t kRingBlockBytes = uint32_t{1} << 20;
static_assert(kRingBlockBytes > 2 * kMaxCapturedLength);
constexpr uint64_t kMinRingBlocks = 2;
constexpr uint64_t kMaxRingBlocks = 4095;  // the kernel's sizes are 32 bit
/// TPACKET_V3 packs packets densely; the kernel only requires that this divides the block size.
constexpr uint32_t kRingFrameBytes = 2048;
/// How long the ring should last if the recorder stalls while few packets arrive. The kernel passes
/// on a block that is not full after one to two retire times, so a few packets may occupy a whole
/// block, and the ring fills although it holds few bytes. The more blocks it has, the shorter
/// the retire time may be.
constexpr uint64_t kRingLastsMs = 60'000;
constexpr uint64_t kMinRetireMs = 20;
constexpr uint64_t kMaxRetireMs = 100;

uint32_t retireMs(uint64_t blocks) {
  return static_cast<uint32_t>(std::clamp(kRingLastsMs / blocks, kMinRetireMs, kMaxRetireMs));
}

Error unavailable(std::string message) { return {Code::kCaptureUnavailable, std::move(message)}; }

std::string executablePath() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "<this program>";
}

template <typename T>
bool setOption(int descriptor, int name, const T& value) {
  return ::setsockopt(descriptor, SOL_PACKET, name, &value, sizeof value) == 0;
}

/// A filter that accepts nothing.
bool attachClosedGate(int descriptor) {
  sock_filter rejectAll = {BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program = {1, &rejectAll};
  return ::setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

}  // namespace

Error CaptureSocket::failure(const std::string& action, int errorNumber) const {
  return unavailable("cannot " + action + " " + interfaceName_ + ": " +
                     std::generic_category().message(errorNumber));
}

Result<CaptureSocket> CaptureSocket::open(const CaptureSocketOptions& options) {
  // Protocol 0: nothing is received before everything is set up.
  const int descriptor = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (descriptor < 0 && (errno == EPERM || errno == EACCES)) {
    return unavailable("cannot capture on " + options.interfaceName +
                       ": the recorder does not have CAP_NET_RAW; grant it with: sudo "
                       "setcap cap_net_raw+ep " +
                       executablePath());
  }
  CaptureSocket socket(descriptor, options.interfaceName);
  if (descriptor < 0) return socket.failure("open a packet socket for", errno);
  if (auto status = socket.setUp(options); !status) return status.error();
  return socket;
}

CaptureSocket::CaptureSocket(CaptureSocket&& other) noexcept : descriptor_(-1) {
  *this = std::move(other);
}

CaptureSocket& CaptureSocket::operator=(CaptureSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(interfaceName_, other.interfaceName_);
  std::swap(interfaceIndex_, other.interfaceIndex_);
  std::swap(isLoopback_, other.isLoopback_);
  std::swap(hasNicTimestamps_, other.hasNicTimestamps_);
  std::swap(ring_, other.ring_);
  std::swap(ringBlocks_, other.ringBlocks_);
  std::swap(block_, other.block_);
  std::swap(packetsLeft_, other.packetsLeft_);
  std::swap(header_, other.header_);
  std::swap(packet_, other.packet_);
  return *this;
}

CaptureSocket::~CaptureSocket() {
  if (ring_ != nullptr) ::munmap(ring_, size_t{ringBlocks_} * kRingBlockBytes);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status CaptureSocket::setUp(const CaptureSocketOptions& options) {
  if (auto status = findInterface(); !status) return status;
  if (!attachClosedGate(descriptor_)) return failure("install the closed filter on", errno);
  // On the loopback every packet is seen twice, going out and coming in.
  if (isLoopback_ && !setOption(descriptor_, PACKET_IGNORE_OUTGOING, int{1})) {
    return failure("ignore outgoing packets on", errno);
  }
  hasNicTimestamps_ = useNicTimestamps(descriptor_, interfaceName_);
  if (auto status = makeRing(options.ringBytes); !status) return status;
  return bindTo(options);
}

Status CaptureSocket::findInterface() {
  ifreq request{};
  if (interfaceName_.empty() || interfaceName_.size() >= IFNAMSIZ) {
    return unavailable("\"" + interfaceName_ + "\" is not the name of an interface");
  }
  std::memcpy(request.ifr_name, interfaceName_.data(), interfaceName_.size());
  if (::ioctl(descriptor_, SIOCGIFINDEX, &request) != 0) {
    if (errno == ENODEV) return unavailable("there is no interface " + interfaceName_);
    return failure("find the interface", errno);
  }
  interfaceIndex_ = request.ifr_ifindex;
  if (::ioctl(descriptor_, SIOCGIFHWADDR, &request) != 0) return failure("inspect", errno);
  const unsigned short type = request.ifr_hwaddr.sa_family;
  isLoopback_ = type == ARPHRD_LOOPBACK;
  if (type == ARPHRD_ETHER || isLoopback_) return ok();
  return unavailable("the interface " + interfaceName_ + " is of hardware type " +
                     std::to_string(type) + "; only Ethernet (type 1) can be captured");
}

Status CaptureSocket::makeRing(uint64_t bytes) {
  const uint64_t blocks = std::clamp(bytes / kRingBlockBytes, kMinRingBlocks, kMaxRingBlocks);
  if (!setOption(descriptor_, PACKET_VERSION, int{TPACKET_V3})) {
    return failure("use TPACKET_V3 on", errno);
  }
  tpacket_req3 request{};
  request.tp_block_size = kRingBlockBytes;
  request.tp_block_nr = static_cast<uint32_t>(blocks);
  request.tp_frame_size = kRingFrameBytes;
  request.tp_frame_nr = request.tp_block_nr * (kRingBlockBytes / kRingFrameBytes);
  request.tp_retire_blk_tov = retireMs(blocks);
  const std::string action = "create a ring of " + std::to_string(blocks) + " MiB (ringBytes) for";
  if (!setOption(descriptor_, PACKET_RX_RING, request)) return failure(action, errno);
  void* mapped = ::mmap(nullptr, blocks * kRingBlockBytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, descriptor_, 0);
  if (mapped == MAP_FAILED) return failure(action, errno);
  ring_ = static_cast<uint8_t*>(mapped);
  ringBlocks_ = static_cast<uint32_t>(blocks);
  return ok();
}

Status CaptureSocket::bindTo(const CaptureSocketOptions& options) {
  packet_mreq membership{};
  membership.mr_ifindex = interfaceIndex_;
  membership.mr_type = PACKET_MR_PROMISC;
  if (options.isPromiscuous && !setOption(descriptor_, PACKET_ADD_MEMBERSHIP, membership)) {
    return failure("receive all packets of", errno);
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = interfaceIndex_;
  if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failure("capture on", errno);
  }
  if (options.fanout == nullptr) return ok();
  const int failed = options.fanout->join(descriptor_, interfaceIndex_, isLoopback_);
  return failed == 0 ? ok() : failure("distribute the packets among the threads of", failed);
}

Status CaptureSocket::openGate() {
  const int unused = 0;
  if (::setsockopt(descriptor_, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) != 0) {
    return failure("remove the closed filter from", errno);
  }
  return ok();
}

void CaptureSocket::closeGate() {
  [[maybe_unused]] const bool isClosed = attachClosedGate(descriptor_);
  assert(isClosed);
}

const RingPacket* CaptureSocket::front() {
  if (packetsLeft_ == 0) enterBlock();
  return packetsLeft_ == 0 ? nullptr : &packet_;
}

void CaptureSocket::enterBlock() {
  auto* block = reinterpret_cast<tpacket_block_desc*>(ring_ + size_t{block_} * kRingBlockBytes);
  tpacket_hdr_v1& info = block->hdr.bh1;
  // Read nothing else of the block before its status says that the kernel has released it.
  if ((__atomic_load_n(&info.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) == 0) return;
  packetsLeft_ = info.num_pkts;
  header_ = reinterpret_cast<const uint8_t*>(block) + info.offset_to_first_pkt;
  if (packetsLeft_ > 0) return loadPacket();
  packetsLeft_ = 1;
  drop();
}

void CaptureSocket::loadPacket() {
  const auto* header = reinterpret_cast<const tpacket3_hdr*>(header_);
  packet_.bytes = header_ + header->tp_mac;
  packet_.capturedLength = header->tp_snaplen;
  packet_.originalLength = header->tp_len;
  packet_.timestampNs = int64_t{header->tp_sec} * kNanosPerSecond + header->tp_nsec;
  packet_.hasVlanTag = (header->tp_status & TP_STATUS_VLAN_VALID) != 0;
  packet_.vlanTag = static_cast<uint16_t>(header->hv1.tp_vlan_tci);
  const bool hasProtocol = (header->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
  packet_.vlanProtocol = hasProtocol ? header->hv1.tp_vlan_tpid : uint16_t{ETH_P_8021Q};
}

void CaptureSocket::drop() {
  if (--packetsLeft_ > 0) {
    header_ += reinterpret_cast<const tpacket3_hdr*>(header_)->tp_next_offset;
    return loadPacket();
  }
  auto* block = reinterpret_cast<tpacket_block_desc*>(ring_ + size_t{block_} * kRingBlockBytes);
  __atomic_store_n(&block->hdr.bh1.block_status, uint32_t{TP_STATUS_KERNEL}, __ATOMIC_RELEASE);
  block_ = (block_ + 1) % ringBlocks_;
}

SocketCounts CaptureSocket::takeCounts() {
  tpacket_stats_v3 counts{};
  socklen_t size = sizeof counts;
  if (::getsockopt(descriptor_, SOL_PACKET, PACKET_STATISTICS, &counts, &size) != 0) return {};
  return {counts.tp_packets, counts.tp_drops};
}

bool CaptureSocket::takeError() {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0;
}

bool CaptureSocket::isGone() const {
  return if_nametoindex(interfaceName_.c_str()) != static_cast<unsigned>(interfaceIndex_);
}

}  // namespace capfleet
