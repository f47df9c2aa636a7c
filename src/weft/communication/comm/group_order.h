// weft/communication/comm/group_order.h -- groups whose rank order differs from the job's.
//
//   split(colour, key):   job ranks of a group      8  3  5          its ranks 0 1 2
//                         as jobs and transports    3  5  8
//                         want them
//
// Jobs and transports list members by ascending job rank; this file translates between the two
// orders.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {

// Job::exchange among `members` in any order; returns the parcels in that order.
Result<std::vector<transport::Parcel>> exchange(transport::Job& job, std::span<const std::int32_t> members,
                                                transport::Topic topic, transport::Parcel mine);

// `inner` is the endpoint of the members in ascending order; the result has them in the order of
// `members`.
std::unique_ptr<transport::Endpoint> in_group_order(std::unique_ptr<transport::Endpoint> inner,
                                                    std::span<const std::int32_t> members);

}  // namespace weft::comm
