#include "support/measure.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace weft::bench {
namespace {

double seconds_on(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Processor time of all processes on this machine; 0 if the system does not report it.
double machine_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft_irq = 0, stolen = 0;
  file >> word >> user >> nice >> system >> idle >> waiting >> irq >> soft_irq >> stolen;
  return (user + nice + system + irq + soft_irq + stolen) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double own_seconds() {
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  return seconds_on(CLOCK_PROCESS_CPUTIME_ID) + seconds(children.ru_utime) + seconds(children.ru_stime);
}

double seconds_of(const Side& side) {
  if (side.processes.empty()) return own_seconds();
  double sum = 0;
  for (const pid_t process : side.processes)
    if (clockid_t clock{}; clock_getcpuclockid(process, &clock) == 0) sum += seconds_on(clock);
  return sum;
}

struct Turn {
  double seconds = 0, processor = 0;  // per unit of work
  double others = 0;
};

// In processors. The system's clock has 100 ticks per second, so smaller values are noise.
constexpr double kQuiet = 0.1;

// Processor use of other programs.
class Bystanders {
 public:
  explicit Bystanders(std::span<const Side> sides) : sides_(sides) {}

  void begin() {
    wall_ = wall_seconds();
    theirs_ = theirs();
  }
  double end() const { return std::max(0.0, (theirs() - theirs_) / (wall_seconds() - wall_)); }

 private:
  double theirs() const {
    double sum = machine_seconds() - own_seconds();
    for (const Side& side : sides_)
      if (!side.processes.empty()) sum -= seconds_of(side);
    return sum;
  }

  std::span<const Side> sides_;
  double wall_ = 0, theirs_ = 0;
};

bool enough(const std::vector<std::vector<Turn>>& taken, int wanted) {
  return std::ranges::all_of(taken, [&](const std::vector<Turn>& turns) {
    return std::ranges::count_if(turns, [](const Turn& turn) { return turn.others < kQuiet; }) >= wanted;
  });
}

Times summary(std::vector<Turn> turns, int wanted) {
  std::ranges::stable_sort(turns, {}, &Turn::others);
  turns.resize(std::min(turns.size(), static_cast<std::size_t>(wanted)));
  const auto middle = [&](const auto& of) {
    std::vector<double> values;
    for (const Turn& turn : turns) values.push_back(of(turn));
    return median(std::move(values));
  };
  const double seconds = middle([](const Turn& turn) { return turn.seconds; });
  const double distance = middle([&](const Turn& turn) { return std::fabs(turn.seconds - seconds); });
  return {seconds, distance / seconds, middle([](const Turn& turn) { return turn.processor; }),
          middle([](const Turn& turn) { return turn.others; })};
}

}  // namespace

double wall_seconds() { return seconds_on(CLOCK_MONOTONIC); }
double processor_seconds() { return seconds_on(CLOCK_THREAD_CPUTIME_ID); }

double wall_seconds_of(const std::function<void()>& work) {
  const double begin = wall_seconds();
  work();
  return wall_seconds() - begin;
}

double processor_seconds_of(const std::function<void()>& work) {
  const double begin = processor_seconds();
  work();
  return processor_seconds() - begin;
}

Side side_of_steps(const std::function<double(std::int64_t)>& train, std::vector<pid_t> processes,
                   bool warms_up) {
  constexpr double kTurn = 0.2;  // seconds
  // Calibrates until it takes that long, since the first steps are not representative.
  train(2);
  std::int64_t steps = 1;
  while (train(steps) <= 0.7 * kTurn) steps *= 2;
  Side side{[=] { return train(steps); }, static_cast<double>(steps), std::move(processes)};
  if (warms_up && steps > 1) side.warm_up = [=] { train((steps + 9) / 10); };
  return side;
}

std::vector<Times> take_turns(std::span<const Side> sides, const Turns& turns) {
  std::vector<std::vector<Turn>> taken(sides.size());
  Bystanders bystanders(sides);
  for (int round = 0; round < turns.wanted || (round < turns.most && !enough(taken, turns.wanted)); ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::duration<double>(turns.pause));
      if (sides[i].warm_up) sides[i].warm_up();
      bystanders.begin();
      const double before = seconds_of(sides[i]);
      const double wall = sides[i].turn();
      const double processor = seconds_of(sides[i]) - before;
      taken[i].push_back({wall / sides[i].amount, processor / sides[i].amount, bystanders.end()});
    }
  }
  std::vector<Times> times;
  for (const std::vector<Turn>& side : taken) times.push_back(summary(side, turns.wanted));
  return times;
}

}  // namespace weft::bench
