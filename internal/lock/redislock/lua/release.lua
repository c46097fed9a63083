-- Ends a lease, or lets nobody hold the lock for some time more. ARGV has the term, that
-- time (0 for none) with facts that name it, the channel and message for those who wait, and
-- the term that has the lock for that time, by which an operator can free it.
-- The answer 2 says that the message was not allowed.
local lock, fence, holders, legacy = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local term, after, facts, channel, message, nobody = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local value = redis.call('GET', lock)
if not value then return 0 end
if value == 'shared' then
  local holder = redis.call('HGET', holders, term)
  if not holder then return 0 end
  redis.call('HDEL', holders, term)
  if after > 0 then
    redis.call('HSET', holders, nobody, int(ms + after) .. string.match(holder, '^%d+( %S+ %d+ )') .. facts)
  end
  settle(lock, holders, legacy)
elseif holds(value, term) then
  local mine = legacy and redis.call('GET', legacy) == term
  redis.call('DEL', lock)
  if mine then redis.call('DEL', legacy) end
  if after > 0 then
    redis.call('SET', lock, nobody .. string.match(value, '( %d+ )') .. facts, 'PX', after)
    if mine then redis.call('SET', legacy, nobody, 'PX', after) end
  end
else
  return 0
end
local last = redis.call('GET', fence)
if last and (value ~= 'shared' or redis.call('EXISTS', lock) == 0) then
  redis.call('SET', fence, string.match(last, '^%d+') .. ' free', 'KEEPTTL')
end
local told = after == 0 and channel ~= '' and redis.pcall('PUBLISH', channel, message)
return type(told) == 'table' and 2 or 1
