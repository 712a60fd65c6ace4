#include "filter/regex_search_rate.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <random>
#include <vector>

namespace capfleet {
namespace {

constexpr size_t kTextBytes = 64 * 1024;
constexpr size_t kPacketBytes = 1400;
constexpr int kTries = 4;
constexpr double kEnoughBytesPerSecond = 1e9;

int stopAtMatch(unsigned, unsigned long long, unsigned long long, unsigned, void*) { return 1; }

double cpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string repeated(const std::string& piece) {
  std::string text;
  while (text.size() < kTextBytes) text += piece;
  text.resize(kTextBytes);
  return text;
}

std::string randomFrom(const std::string& alphabet) {
  std::mt19937 random(1);
  std::string text(kTextBytes, '\0');
  for (char& byte : text) byte = alphabet[random() % alphabet.size()];
  return text;
}

std::vector<std::string> textsFor(const std::string& pattern) {
  std::string allBytes;
  for (int byte = 0; byte < 256; byte++) allBytes += static_cast<char>(byte);
  return {
      repeated("a"),
      randomFrom(allBytes),
      randomFrom("ab"),
      repeated("GET /index.html?user=alice&id=12345 HTTP/1.1\r\nHost: www.example.com\r\n"
               "Cookie: session=0123456789abcdef\r\nAccept: text/html, */*\r\n\r\n"),
      randomFrom(pattern),
      repeated(pattern),
  };
}

double searchRate(const hs_database_t* database, hs_scratch_t* scratch, const std::string& text) {
  double best = 0;
  for (int i = 0; i < kTries && best < kEnoughBytesPerSecond; i++) {
    const double startedS = cpuSeconds();
    for (size_t at = 0; at + kPacketBytes <= text.size(); at += kPacketBytes) {
      hs_scan(database, text.data() + at, kPacketBytes, 0, scratch, stopAtMatch, nullptr);
    }
    const double elapsedS = std::max(cpuSeconds() - startedS, 1e-9);
    best = std::max(best, static_cast<double>(text.size()) / elapsedS);
  }
  return best;
}

}  // namespace

double worstSearchRate(const hs_database_t* database, const std::string& pattern) {
  hs_scratch_t* scratch = nullptr;
  if (hs_alloc_scratch(database, &scratch) != HS_SUCCESS) return 0;
  double worst = kEnoughBytesPerSecond;
  for (const std::string& text : textsFor(pattern)) {
    worst = std::min(worst, searchRate(database, scratch, text));
  }
  hs_free_scratch(scratch);
  return worst;
}

}  // namespace capfleet
