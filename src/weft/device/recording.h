// weft/device/recording.h -- what a stream was given once, to be given again at once: one launch, and not one for
// each kernel.
#pragma once
#include <memory>

#include "weft/device/device.h"

namespace weft::device {

class Recording {
 public:
  virtual ~Recording() = default;
};

// A stream that can write down what it is given instead of doing it. What was written down reads and writes where it
// did then, whatever lies there now.
class RecordingStream : public Stream {
 public:
  using Stream::launch;
  virtual void start_recording() = 0;
  virtual Result<std::unique_ptr<Recording>> end_recording() = 0;
  virtual void launch(const Recording& recording) = 0;
  // While recording: the event says, each time, when what was recorded came so far. An event that is recorded as others are
  // orders streams, and no more.
  virtual void mark(Event& event) = 0;
};

// Null where the stream's device has no such thing.
inline RecordingStream* as_recording(Stream& stream) { return dynamic_cast<RecordingStream*>(&stream); }

}  // namespace weft::device
