-- The next part calls `struct.unpack` by this name.
local spread = unpack
