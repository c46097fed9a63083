-- Takes the lock from the one term that was seen. ARGV has that term and its mark, and the
-- term, mode, TTL and facts of the new lease.
local lock, fence, holders, legacy = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local seen, mark, mode = ARGV[1], ARGV[2], ARGV[4]
local value = redis.call('GET', lock)
if value == 'shared' then
  local expires = string.match(redis.call('HGET', holders, seen) or '', '^%d+')
  if not expires then return { 'ended' } end
  if expires ~= mark then return { 'renewed' } end
  local found, left = refusal(lock, holders, legacy, mode, seen)
  if found then return { 'held', 0, found, left } end
  redis.call('HDEL', holders, seen)
elseif value and holds(value, seen) then
  if int(redis.call('PEXPIRETIME', lock)) ~= mark then return { 'renewed' } end
else
  return { 'ended' }
end
local old = legacy and redis.call('GET', legacy)
if old and old ~= 'shared' and old ~= seen then return { 'held', 0, old, redis.call('PTTL', legacy) } end
if value ~= 'shared' or mode == 'exclusive' then redis.call('DEL', lock, holders) end
if old == seen then redis.call('DEL', legacy) end
return { (grant(lock, fence, holders, legacy, ARGV[3], mode, tonumber(ARGV[5]), ARGV[6])), 1 }
