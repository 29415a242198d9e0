-- Keeps one entry and lets others go until what is kept is within the bounds.
-- KEYS: the entry; the index of all entries, and of the owner's, by when they
-- expire; the sizes of all entries; the sums, of each owner and of all.
-- ARGV: the value; its size; when it expires; now, both in milliseconds; the name
-- of the entry; the owner; the bounds of the owner and of all; the prefix of keys.
local entry, all, own, sizes, sums = unpack(KEYS)
local value, size, expires, now, name, owner, most_own, most_all, prefix = unpack(ARGV)

local function forget(member)
  local n = tonumber(redis.call('HGET', sizes, member) or 0)
  local whose = string.sub(member, 1, 64)
  redis.call('DEL', prefix .. 'e:' .. member)
  redis.call('HDEL', sizes, member)
  redis.call('ZREM', all, member)
  redis.call('ZREM', prefix .. 'o:' .. whose, member)
  redis.call('HINCRBY', sums, 'all', -n)
  if redis.call('HINCRBY', sums, whose, -n) <= 0 then
    redis.call('HDEL', sums, whose)
  end
end

if redis.call('HEXISTS', sizes, name) == 1 then forget(name) end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', all, '-inf', now, 'LIMIT', 0, 64)) do forget(member) end
redis.call('SET', entry, value, 'PXAT', expires)
redis.call('ZADD', all, expires, name)
redis.call('ZADD', own, expires, name)
redis.call('HSET', sizes, name, size)
redis.call('HINCRBY', sums, 'all', size)
redis.call('HINCRBY', sums, owner, size)
for bound, index in pairs({[own] = {owner, most_own}, [all] = {'all', most_all}}) do
  while tonumber(redis.call('HGET', sums, index[1]) or 0) > tonumber(index[2]) do
    local first = redis.call('ZRANGE', bound, 0, 0)[1]
    if not first then break end
    forget(first)
  end
end
return redis.call('EXISTS', entry)
