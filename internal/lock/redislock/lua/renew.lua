-- Lets a lease run for another TTL. ARGV has the term, the TTL and, where they change, the
-- facts.
local lock, fence, holders, legacy = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local term, ttl, facts = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local value = redis.call('GET', lock)
if not value then return 0 end
if value == 'shared' then
  local expires, mode, token, was = string.match(redis.call('HGET', holders, term) or '', '^(%d+) (%S+) (%d+) (.*)$')
  if not expires or tonumber(expires) <= ms then return 0 end
  redis.call('HSET', holders, term, int(ms + ttl) .. ' ' .. mode .. ' ' .. token .. ' ' .. (facts == '' and was or facts))
  settle(lock, holders, legacy)
elseif holds(value, term) then
  if facts == '' then
    redis.call('PEXPIRE', lock, ttl)
  else
    redis.call('SET', lock, string.match(value, '^%S+ %d+ ') .. facts, 'PX', ttl)
  end
  if legacy and redis.call('GET', legacy) == term then redis.call('PEXPIRE', legacy, ttl) end
else
  return 0
end
redis.call('PEXPIRE', fence, ttl + memory)
return 1
