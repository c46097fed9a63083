-- Takes all locks or none. ARGV has how many keys a lock has, and for each lock its term,
-- mode, TTL and facts. One without a key of an older system has its own again there.
local keys, answer = tonumber(ARGV[1]), {}
local function of(i)
  local legacy = keys > 3 and KEYS[i + 4] ~= KEYS[i + 1] and KEYS[i + 4] or nil
  return KEYS[i + 1], KEYS[i + 2], KEYS[i + 3], legacy
end
local free = {}
for n = 0, #KEYS / keys - 1 do
  local lock, fence, holders, legacy = of(n * keys)
  free[n] = redis.call('EXISTS', lock) == 0
  local value, left = refusal(lock, holders, legacy, ARGV[n * 4 + 3])
  if value and not holds(value, ARGV[n * 4 + 2]) then return { 'held', n, value, left } end
end
for n = 0, #KEYS / keys - 1 do
  local lock, fence, holders, legacy = of(n * keys)
  local a = n * 4 + 1
  local token, released = grant(lock, fence, holders, legacy, ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[a + 4])
  answer[2 * n + 1], answer[2 * n + 2] = token, free[n] and not released and 1 or 0
end
return answer
