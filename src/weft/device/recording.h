// weft/device/recording.h -- records the work of a stream and replays it with a single launch, as a
// CUDA graph does.
#pragma once
#include <memory>

#include "weft/device/device.h"

namespace weft::device {

class Recording {
 public:
  virtual ~Recording() = default;
};

// A stream that can record work instead of running it. A replay reads and writes the recorded
// addresses, whatever they hold by then.
class RecordingStream : public Stream {
 public:
  using Stream::launch;
  virtual void start_recording() = 0;
  virtual Result<std::unique_ptr<Recording>> end_recording() = 0;
  virtual void launch(const Recording& recording) = 0;
  // While recording: every replay records the event at this point. An event recorded with record()
  // only orders streams.
  virtual void mark(Event& event) = 0;
};

// Null if the device's streams cannot record.
inline RecordingStream* as_recording(Stream& stream) { return dynamic_cast<RecordingStream*>(&stream); }

}  // namespace weft::device
