-- Lets a lease run for another TTL. ARGV has the term, the TTL and, where they change, the
-- facts.
local lock, fence, holders, legacy = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local term, ttl, facts = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local value = redis.call('GET', lock)
local shared = value == 'shared' and redis.call('HGET', holders, term)
local expires, mode, token, was = string.match(shared or '', '^(%d+) (%S+) (%d+) (.*)$')
if expires and tonumber(expires) <= ms or not expires and not (value and holds(value, term)) then return 0 end
-- It comes first: a server whose memory is full allows it, and then the rest.
redis.call('PEXPIRE', fence, ttl + memory)
if expires then
  redis.call('HSET', holders, term, int(ms + ttl) .. ' ' .. mode .. ' ' .. token .. ' ' .. (facts == '' and was or facts))
  settle(lock, holders, legacy)
  return 1
end
if facts == '' then
  redis.call('PEXPIRE', lock, ttl)
else
  redis.call('SET', lock, string.match(value, '^%S+ %d+ ') .. facts, 'PX', ttl)
end
if legacy and redis.call('GET', legacy) == term then redis.call('PEXPIRE', legacy, ttl) end
return 1
