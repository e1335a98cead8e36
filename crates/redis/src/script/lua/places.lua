-- The state of places, by their numbers.
--
-- Everything in a call happens at one instant, so that a charge is the same for all algorithms: it
-- takes from the room that is left. What else a state has is worked out once, when the place is
-- entered and when it is left.
local room = {}
-- Whether anything has been done to it, so that it has to be written.
local touched = {}
-- What else there is to a state:
--   refundable token bucket: since when credits are counted, their sum; if it lends, how low its debt
--   has been     fixed window: start     calendar window: end, last charge
--   sliding window: index, count, count of the last window, and the room that there was at first
--   log: a string with runs, their units, the units of those that are over, how many those are, and
--   the room at first; where in the string the runs begin and end
local s1, s2, s3, s4, s5, s6, room0 = {}, {}, {}, {}, {}, {}, {}
