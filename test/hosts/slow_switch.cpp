// slow_switch PREFIX HOSTS DELAY_US RATE_MBIT -- a network with delay and limited rate between
// namespaces.
//
//   PREFIX-host-0 ─ tap eth0 ┐                 each host:  out ──[ rate ]── delay ──[ rate ]── in
//   PREFIX-host-1 ─ tap eth0 ┼─ this program
//   PREFIX-host-2 ─ tap eth0 ┘
//
// Does the same as netem, for kernels without it. A frame leaves a host once the frames before it
// have left, and arrives `delay` later. It then queues behind earlier frames for the receiver's
// rate. No frame is lost: senders are blocked instead. Frames may be as long as the kernel's
// segmentation offload makes them; they take the time of the segments they stand for. Prints
// "ready" once the hosts are connected. Ends on SIGTERM.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// The virtio network header that a tap puts in front of every frame. Its kernel header is not valid
// C++.
struct OffloadHeader {
  std::uint8_t flags, segmentation;  // segmentation: 0 when the frame is one segment
  std::uint16_t header_bytes, segment_bytes, checksum_start, checksum_offset;
};
static_assert(sizeof(OffloadHeader) == 10);

constexpr std::size_t kMostFrame = sizeof(OffloadHeader) + 65'535 + 18;
constexpr std::size_t kMostHeld = 16 << 20;  // bytes queued per sending host; beyond this its tap is not read
constexpr int kMostHosts = 64;

using Buffer = std::unique_ptr<char[]>;  // of kMostFrame bytes: the tap's header, then the Ethernet frame

struct Frame {
  Clock::time_point due;  // time at the receiver's line; once queued there, the end of the transfer
  Buffer buffer;
  std::size_t bytes = 0, from = 0, to = 0;
};

struct Host {
  int tap = -1;
  Clock::time_point out_free, in_free;  // when each direction of its line is free again
  std::size_t held = 0;                 // bytes of its undelivered frames
  std::deque<Frame> under_way;          // sent by it, and ...
  std::deque<Frame> coming;             // ... addressed to it; both ordered by `due`
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Opens a tap called eth0 in a namespace, with the address 02:00:00:00:00:<host + 1>.
int open_tap(const std::string& space, int host) {
  const int home = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int there = ::open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (home < 0 || there < 0 || ::setns(there, CLONE_NEWNET) != 0) fail(space.c_str());
  const int tap = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tap < 0) fail("/dev/net/tun");
  ifreq request{};
  std::strcpy(request.ifr_name, "eth0");
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(tap, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
  if (::ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) fail("TUNSETOFFLOAD");
  ifreq address{};
  std::strcpy(address.ifr_name, "eth0");
  address.ifr_hwaddr.sa_family = 1;  // ARPHRD_ETHER
  address.ifr_hwaddr.sa_data[0] = 2;
  address.ifr_hwaddr.sa_data[5] = static_cast<char>(host + 1);
  if (::ioctl(tap, SIOCSIFHWADDR, &address) != 0) fail("SIOCSIFHWADDR");
  if (::setns(home, CLONE_NEWNET) != 0) fail("setns");
  ::close(home);
  ::close(there);
  return tap;
}

// Bytes on the wire: every segment of a long frame has its own headers.
std::size_t wire_bytes(const char* frame, std::size_t length) {
  OffloadHeader header{};
  std::memcpy(&header, frame, sizeof header);
  const std::size_t bytes = length - sizeof header;
  if (header.segmentation == 0 || header.segment_bytes == 0 || bytes <= header.header_bytes) return bytes;
  const std::size_t segments =
      (bytes - header.header_bytes + header.segment_bytes - 1) / header.segment_bytes;
  return bytes + (segments - 1) * header.header_bytes;
}

class Switch {
 public:
  Switch(const std::string& prefix, int hosts, nanoseconds delay, double nanoseconds_per_byte)
      : hosts_(static_cast<std::size_t>(hosts)), delay_(delay), per_byte_(nanoseconds_per_byte) {
    for (int h = 0; h < hosts; ++h)
      hosts_[static_cast<std::size_t>(h)].tap = open_tap(prefix + "-host-" + std::to_string(h), h);
  }

  void run() {
    std::vector<pollfd> polled(hosts_.size());
    for (;;) {
      for (std::size_t h = 0; h < hosts_.size(); ++h) {
        polled[h] = {hosts_[h].held < kMostHeld ? hosts_[h].tap : -1, POLLIN, 0};
      }
      const timespec limit = time_to_next();
      if (::ppoll(polled.data(), polled.size(), &limit, nullptr) < 0 && errno != EINTR) fail("ppoll");
      for (std::size_t h = 0; h < hosts_.size(); ++h) {
        if ((polled[h].revents & POLLIN) != 0) take_from(h);
      }
      land();
      deliver();
    }
  }

 private:
  timespec time_to_next() const {
    auto next = Clock::now() + std::chrono::seconds(1);
    for (const Host& host : hosts_) {
      if (!host.under_way.empty()) next = std::min(next, host.under_way.front().due);
      if (!host.coming.empty()) next = std::min(next, host.coming.front().due);
    }
    const auto left = std::max(nanoseconds(0), std::chrono::duration_cast<nanoseconds>(next - Clock::now()));
    return {static_cast<time_t>(left.count() / 1'000'000'000),
            static_cast<long>(left.count() % 1'000'000'000)};
  }

  void take_from(std::size_t from) {
    for (int turn = 0; turn < 16 && hosts_[from].held < kMostHeld; ++turn) {
      Buffer buffer = take_buffer();
      const ssize_t got = ::read(hosts_[from].tap, buffer.get(), kMostFrame);
      if (got < static_cast<ssize_t>(sizeof(OffloadHeader) + 14)) {
        free_.push_back(std::move(buffer));
        return;
      }
      const auto bytes = static_cast<std::size_t>(got);
      const auto start = std::max(Clock::now(), hosts_[from].out_free);
      hosts_[from].out_free = start + time_of(wire_bytes(buffer.get(), bytes));
      const char* to = buffer.get() + sizeof(OffloadHeader);
      const auto host = static_cast<std::size_t>(static_cast<unsigned char>(to[5])) - 1;
      if ((to[0] & 1) != 0)
        send_to_all(from, buffer.get(), bytes);
      else if (host < hosts_.size() && host != from)
        send(from, host, std::move(buffer), bytes);
    }
  }

  void send_to_all(std::size_t from, const char* frame, std::size_t bytes) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (h == from) continue;
      Buffer copy = take_buffer();
      std::memcpy(copy.get(), frame, bytes);
      send(from, h, std::move(copy), bytes);
    }
  }

  void send(std::size_t from, std::size_t to, Buffer buffer, std::size_t bytes) {
    Host& host = hosts_[from];
    host.held += bytes;
    host.under_way.push_back({host.out_free + delay_, std::move(buffer), bytes, from, to});
  }

  // The sender of the earliest frame that has arrived, if any.
  Host* next_to_land(Clock::time_point now) {
    Host* first = nullptr;
    for (Host& host : hosts_) {
      if (host.under_way.empty() || host.under_way.front().due > now) continue;
      if (first == nullptr || host.under_way.front().due < first->under_way.front().due) first = &host;
    }
    return first;
  }

  // Queues frames by arrival time, whatever their sender: a receiver's line is not reserved for
  // frames that have not left their host.
  void land() {
    const auto now = Clock::now();
    while (Host* const sender = next_to_land(now)) {
      Frame frame = std::move(sender->under_way.front());
      sender->under_way.pop_front();
      Host& host = hosts_[frame.to];
      // Cut-through: a receiver with a single sender adds no time.
      host.in_free = std::max(frame.due, host.in_free + time_of(wire_bytes(frame.buffer.get(), frame.bytes)));
      frame.due = host.in_free;
      host.coming.push_back(std::move(frame));
    }
  }

  // Reuses buffers that are still in cache, which leaves more processor time for the ranks.
  Buffer take_buffer() {
    if (free_.empty()) return std::make_unique_for_overwrite<char[]>(kMostFrame);
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }

  void deliver() {
    for (Host& host : hosts_) {
      while (!host.coming.empty() && host.coming.front().due <= Clock::now()) {
        Frame& frame = host.coming.front();
        static_cast<void>(
            !::write(host.tap, frame.buffer.get(), frame.bytes));  // a host that is down accepts none
        hosts_[frame.from].held -= frame.bytes;
        free_.push_back(std::move(frame.buffer));
        host.coming.pop_front();
      }
    }
  }

  nanoseconds time_of(std::size_t bytes) const {
    return nanoseconds(static_cast<std::int64_t>(static_cast<double>(bytes) * per_byte_));
  }

  std::vector<Host> hosts_;
  const nanoseconds delay_;
  const double per_byte_;
  std::vector<Buffer> free_;
};

}  // namespace

int main(int argc, char** argv) {
  const int hosts = argc == 5 ? std::atoi(argv[2]) : 0;
  const long delay = argc == 5 ? std::atol(argv[3]) : -1;
  const double rate = argc == 5 ? std::atof(argv[4]) : 0;
  if (hosts < 1 || hosts > kMostHosts || delay < 0 || rate <= 0) {
    std::fprintf(stderr, "usage: slow_switch PREFIX HOSTS DELAY_US RATE_MBIT\n");
    return 1;
  }
  // Real switches do not compete for processors. Without this priority, the time slices of busy
  // ranks would add to the delay.
  const sched_param priority{.sched_priority = 10};
  if (::sched_setscheduler(0, SCHED_FIFO, &priority) != 0) std::perror("sched_setscheduler");
  Switch network(argv[1], hosts, std::chrono::microseconds(delay), 8e3 / rate);
  std::puts("ready");
  std::fflush(stdout);
  network.run();
}
