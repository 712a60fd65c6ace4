// Packets for the tests of live captures, on the one interface that every machine has.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>

#include "filter/bpf_program.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// If this process may not capture, the test is skipped with the reason; in continuous integration
/// (CI=true) it fails with it.
#define SKIP_UNLESS_CAPTURED(opened)                                             \
  if (!(opened)) {                                                               \
    const char* ci = std::getenv("CI");                                          \
    ASSERT_FALSE(ci&& std::strcmp(ci, "true") == 0) << (opened).error().message; \
    GTEST_SKIP() << (opened).error().message;                                    \
  }

/// Sends datagrams on the loopback to a port whose socket receives them and ignores them.
class LoopbackSender {
 public:
  LoopbackSender() {
    EXPECT_EQ(::bind(receiver_, reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::getsockname(receiver_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~LoopbackSender() {
    ::close(receiver_);
    ::close(sender_);
  }
  uint16_t port() const { return ntohs(address_.sin_port); }
  void send(uint32_t number) { send({reinterpret_cast<const uint8_t*>(&number), sizeof number}); }
  void send(std::span<const uint8_t> bytes) {
    EXPECT_EQ(::sendto(sender_, bytes.data(), bytes.size(), 0,
                       reinterpret_cast<const sockaddr*>(&address_), sizeof address_),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  const int receiver_ = ::socket(AF_INET, SOCK_DGRAM, 0);
  const int sender_ = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address_ = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
};

/// Accepts UDP over IPv4 to this port, without options.
inline BpfProgram portFilter(uint16_t port) {
  const uint32_t instructions[][4] = {{0x28, 0, 0, 12},   {0x15, 0, 3, 0x0800}, {0x28, 0, 0, 36},
                                      {0x15, 0, 1, port}, {0x06, 0, 0, 1},      {0x06, 0, 0, 0}};
  Bytes bytes;
  for (const auto& [code, jumpTrue, jumpFalse, k] : instructions) {
    const uint64_t word =
        code | uint64_t{jumpTrue} << 16 | uint64_t{jumpFalse} << 24 | uint64_t{k} << 32;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(word >> 8 * i));
  }
  return *BpfProgram::parse(bytes);
}

}  // namespace capfleet::test
