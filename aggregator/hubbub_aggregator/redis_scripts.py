"""What Redis does in one step, in its own language: saving a change, letting go of a round, the lease.

The keys are those of `redis_store`. Every script stays within one hash slot.
"""

from __future__ import annotations

from typing import Final

# ARGV: identity, previous offset, new offset, then commands: their number of words, name, key's index, rest.
SAVE: Final = """
local found = redis.call('HMGET', KEYS[1], 'identity', 'offset', 'broken')
if found[1] and found[1] ~= ARGV[1] then return {'foreign', found[1]} end
if found[3] then return {'broken', found[3]} end
if (found[2] or '0') ~= ARGV[2] then return {'conflict', found[2] or '0'} end
local i = 4
while i <= #ARGV do
  local words = tonumber(ARGV[i])
  local name, key = ARGV[i + 1], KEYS[tonumber(ARGV[i + 2])]
  local reply
  if name == 'ROUND' then
    reply = redis.pcall('HSETNX', KEYS[2], ARGV[i + 3], '0')
    if reply == 1 then
      redis.call('DEL', KEYS[tonumber(ARGV[i + 4])])
      reply = redis.pcall('SET', key, '')
    end
  else
    reply = redis.pcall(name, key, unpack(ARGV, i + 3, i + words))
  end
  if type(reply) == 'table' and reply.err then
    if i > 4 then redis.pcall('HSET', KEYS[1], 'broken', reply.err) end
    return {'failed', reply.err}
  end
  i = i + words + 1
end
redis.call('HSET', KEYS[1], 'identity', ARGV[1], 'offset', ARGV[3])
return {'saved', ARGV[3]}
"""

# KEYS: rounds, seals, the round's integers, past. ARGV: the round's field, how many tallies.
FORGET: Final = """
local n = tonumber(ARGV[2])
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
if redis.call('HGET', KEYS[1], ARGV[1]) == false then return 0 end
for i = 0, 2 * n - 1 do
  local found = redis.call('BITFIELD', KEYS[3], 'GET', 'i64', '#' .. i)[1]
  redis.call('BITFIELD', KEYS[4], 'INCRBY', 'i64', '#' .. (i % n), string.format('%.0f', found))
end
redis.call('UNLINK', KEYS[3])
redis.call('HSET', KEYS[1], ARGV[1], 'archived')
return 1
"""

# KEYS: the lease. ARGV: token, milliseconds, 0 to give it back.
LEASE: Final = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
"""

# KEYS: steps, lease. ARGV: token, then fields and values, of which an empty one forgets its field.
SAVE_STEPS: Final = """
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return 1 end
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[i])
  else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return 0
"""

# KEYS: head, surveys, rounds, seals, lost, past, then the integers of some rounds. All at one moment, so that
# a partition that is written all the time can be read. Lua's stack ends at 8,000 arguments.
READ: Final = """
local integers = {}
for start = 7, #KEYS, 1000 do
  local found = redis.call('MGET', unpack(KEYS, start, math.min(start + 999, #KEYS)))
  for i = 1, #found do integers[#integers + 1] = found[i] end
end
local function all(key) return redis.call('HGETALL', key) end
return {all(KEYS[1]), all(KEYS[2]), all(KEYS[3]), all(KEYS[4]), redis.call('LRANGE', KEYS[5], 0, -1),
        redis.call('GET', KEYS[6]), integers}
"""
