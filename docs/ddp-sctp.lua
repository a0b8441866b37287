-- A dissector of Wireshark and tshark for DDP and RDMAP over SCTP: RFC 5043
-- (with RFC 6581), RFC 5041, RFC 5040 and RFC 7306.
--
--   tshark -X lua_script:ddp-sctp.lua -d udp.port==9899,sctp -r FILE
--   wireshark -X lua_script:ddp-sctp.lua FILE
--
-- or copied to the directory of personal Lua plugins. SCTP over another UDP
-- port than 9899 needs the -d, or "Decode As". Every DATA chunk with payload
-- protocol 16 or 17 is shown as "DDP/SCTP"; filters begin with ddp_sctp.

local proto = Proto("ddp_sctp", "DDP over SCTP")

local functions = {
  [1] = "Initiate", [2] = "Accept", [3] = "Reject", [4] = "Terminate",
  [5] = "Enhanced Initiate", [6] = "Enhanced Accept", [7] = "Enhanced Reject", [0xffff] = "experimental",
}
local opcodes = {
  [0] = "RDMA Write", [1] = "RDMA Read Request", [2] = "RDMA Read Response", [3] = "Send",
  [4] = "Send with Invalidate", [5] = "Send with SE", [6] = "Send with SE and Invalidate", [7] = "Terminate",
  [8] = "Immediate Data", [9] = "Immediate Data with SE", [10] = "Atomic Request", [11] = "Atomic Response",
  [15] = "experimental",
}
local queues = { [0] = "Send", [1] = "Read Request", [2] = "Terminate", [3] = "Atomic Response" }
local atomics = { [0] = "FetchAdd", [2] = "CmpSwap" }
local layers = { [0] = "RDMA", [1] = "DDP", [2] = "LLP" }
-- Layer, error type and error code of a Terminate message.
local errors = {
  [0x0100] = "remote protection: invalid STag", [0x0101] = "remote protection: base or bounds violation",
  [0x0102] = "remote protection: access rights violation", [0x0103] = "remote protection: STag not associated with stream",
  [0x0104] = "remote protection: TO wrap", [0x0109] = "remote protection: STag cannot be invalidated",
  [0x01ff] = "remote protection: unspecified error", [0x0205] = "remote operation: invalid RDMAP version",
  [0x0206] = "remote operation: unexpected opcode", [0x0207] = "remote operation: catastrophic error, localized to stream",
  [0x0208] = "remote operation: catastrophic error, global", [0x0209] = "remote operation: STag cannot be invalidated",
  [0x02ff] = "remote operation: unspecified error", [0x1000] = "DDP local catastrophic error",
  [0x1100] = "DDP tagged buffer: invalid STag", [0x1101] = "DDP tagged buffer: base or bounds violation",
  [0x1102] = "DDP tagged buffer: STag not associated with stream", [0x1103] = "DDP tagged buffer: TO wrap",
  [0x1104] = "DDP tagged buffer: invalid DDP version", [0x1201] = "DDP untagged buffer: invalid QN",
  [0x1202] = "DDP untagged buffer: invalid MSN, no buffer available", [0x1203] = "DDP untagged buffer: invalid MSN, range is not valid",
  [0x1204] = "DDP untagged buffer: invalid MO", [0x1205] = "DDP untagged buffer: message too long for buffer",
  [0x1206] = "DDP untagged buffer: invalid DDP version", [0x2001] = "LLP: connection lost", [0x2002] = "LLP: CRC error",
  [0x2003] = "LLP: marker and length mismatch", [0x2004] = "LLP: invalid request or reply frame",
  [0x2005] = "LLP: local catastrophic error", [0x2006] = "LLP: insufficient IRD resources", [0x2007] = "LLP: no matching RTR option",
}

local f = {
  ssn = ProtoField.uint16("ddp_sctp.ssn", "DDP-SSN"),
  stream = ProtoField.uint16("ddp_sctp.stream", "DDP stream"),
  func = ProtoField.uint16("ddp_sctp.function", "Session function", base.DEC, functions),
  p2p = ProtoField.bool("ddp_sctp.p2p", "Peer-to-peer model", 32, nil, 0x80000000),
  rtr_send = ProtoField.bool("ddp_sctp.rtr.send", "Ready to receive by Send", 32, nil, 0x40000000),
  ird = ProtoField.uint32("ddp_sctp.ird", "IRD", base.DEC, nil, 0x3fff0000),
  rtr_write = ProtoField.bool("ddp_sctp.rtr.write", "Ready to receive by Write", 32, nil, 0x00008000),
  rtr_read = ProtoField.bool("ddp_sctp.rtr.read", "Ready to receive by Read", 32, nil, 0x00004000),
  ord = ProtoField.uint32("ddp_sctp.ord", "ORD", base.DEC, nil, 0x00003fff),
  private = ProtoField.bytes("ddp_sctp.private", "Private data"),
  tagged = ProtoField.bool("ddp_sctp.tagged", "Tagged", 8, nil, 0x80),
  last = ProtoField.bool("ddp_sctp.last", "Last", 8, nil, 0x40),
  dv = ProtoField.uint8("ddp_sctp.dv", "DDP version", base.DEC, nil, 0x03),
  rv = ProtoField.uint8("ddp_sctp.rv", "RDMAP version", base.DEC, nil, 0xc0),
  opcode = ProtoField.uint8("ddp_sctp.opcode", "Opcode", base.DEC, opcodes, 0x0f),
  inval = ProtoField.uint32("ddp_sctp.invalidate", "Invalidate STag", base.HEX),
  stag = ProtoField.uint32("ddp_sctp.stag", "STag", base.HEX),
  to = ProtoField.uint64("ddp_sctp.to", "Tagged offset", base.HEX),
  queue = ProtoField.uint32("ddp_sctp.queue", "Queue", base.DEC, queues),
  msn = ProtoField.uint32("ddp_sctp.msn", "Message sequence number"),
  mo = ProtoField.uint32("ddp_sctp.mo", "Message offset"),
  sink_stag = ProtoField.uint32("ddp_sctp.read.sink_stag", "Sink STag", base.HEX),
  sink_to = ProtoField.uint64("ddp_sctp.read.sink_to", "Sink tagged offset", base.HEX),
  size = ProtoField.uint32("ddp_sctp.read.size", "Read size"),
  src_stag = ProtoField.uint32("ddp_sctp.read.src_stag", "Source STag", base.HEX),
  src_to = ProtoField.uint64("ddp_sctp.read.src_to", "Source tagged offset", base.HEX),
  term = ProtoField.uint16("ddp_sctp.term", "Terminate error", base.HEX, errors),
  layer = ProtoField.uint8("ddp_sctp.term.layer", "Layer", base.DEC, layers, 0xf0),
  etype = ProtoField.uint8("ddp_sctp.term.type", "Error type", base.DEC, nil, 0x0f),
  ecode = ProtoField.uint8("ddp_sctp.term.code", "Error code", base.HEX),
  term_m = ProtoField.bool("ddp_sctp.term.m", "Segment length valid", 8, nil, 0x80),
  term_d = ProtoField.bool("ddp_sctp.term.d", "DDP header included", 8, nil, 0x40),
  term_r = ProtoField.bool("ddp_sctp.term.r", "RDMAP header included", 8, nil, 0x20),
  seglen = ProtoField.uint16("ddp_sctp.term.length", "DDP segment length"),
  imm = ProtoField.uint64("ddp_sctp.immediate", "Immediate data", base.HEX),
  aop = ProtoField.uint32("ddp_sctp.atomic.op", "Atomic operation", base.DEC, atomics, 0xf),
  aid = ProtoField.uint32("ddp_sctp.atomic.id", "Request identifier"),
  adata = ProtoField.uint64("ddp_sctp.atomic.data", "Add or swap data", base.HEX),
  amask = ProtoField.uint64("ddp_sctp.atomic.mask", "Add or swap mask", base.HEX),
  acmp = ProtoField.uint64("ddp_sctp.atomic.compare", "Compare data", base.HEX),
  acmask = ProtoField.uint64("ddp_sctp.atomic.compare_mask", "Compare mask", base.HEX),
  aorig = ProtoField.uint64("ddp_sctp.atomic.original", "Original value", base.HEX),
  data = ProtoField.bytes("ddp_sctp.data", "Payload"),
}
for _, field in pairs(f) do
  table.insert(proto.fields, field)
end

local short = ProtoExpert.new("ddp_sctp.short", "Too short for its header", expert.group.MALFORMED, expert.severity.ERROR)
local strange = ProtoExpert.new("ddp_sctp.strange", "Not defined by the RFCs", expert.group.PROTOCOL, expert.severity.WARN)
proto.experts = { short, strange }

local sid = Field.new("sctp.data_sid")

-- take adds fields, each {field, octets}, and returns the offset behind them, or
-- nil if the buffer ends before.
local function take(tree, buf, at, list)
  for _, item in ipairs(list) do
    if at + item[2] > buf:len() then
      tree:add_proto_expert_info(short)
      return nil
    end
    if item[1] then
      tree:add(item[1], buf(at, item[2]))
    end
    at = at + item[2]
  end
  return at
end

-- control shows a session control message from its function code on.
local function control(buf, tree)
  local at = take(tree, buf, 2, { { f.func, 2 } })
  if not at then
    return "session control"
  end
  local code = buf(2, 2):uint()
  if not functions[code] then
    tree:add_proto_expert_info(strange)
  end
  if (code == 5 or code == 6) and buf:len() >= 8 then
    for _, field in ipairs({ f.p2p, f.rtr_send, f.ird, f.rtr_write, f.rtr_read, f.ord }) do
      tree:add(field, buf(4, 4))
    end
    at = 8
  end
  if at < buf:len() then
    tree:add(f.private, buf(at))
  end
  return "DDP session " .. (functions[code] or string.format("function %d", code))
end

local function terminate(buf, at, tree)
  local first = at
  at = take(tree, buf, at, { { f.term, 2 } })
  if not at or first + 4 > buf:len() then
    return ""
  end
  tree:add(f.layer, buf(first, 1))
  tree:add(f.etype, buf(first, 1))
  tree:add(f.ecode, buf(first + 1, 1))
  for _, field in ipairs({ f.term_m, f.term_d, f.term_r }) do
    tree:add(field, buf(first + 2, 1))
  end
  local bits = buf(first + 2, 1):uint()
  at = first + 4
  if bits >= 0x80 or bits % 0x80 >= 0x40 then
    at = take(tree, buf, at, { { f.seglen, 2 } })
  end
  if at and at < buf:len() then
    tree:add(f.data, buf(at)):set_text("Headers of the segment at fault")
  end
  local e = buf(first, 2):uint()
  return ": " .. (errors[e] or string.format("error %04x", e))
end

-- segment shows a DDP segment, which begins behind the DDP-SSN.
local function segment(buf, tree)
  if buf:len() < 4 then
    tree:add_proto_expert_info(short)
    return "DDP segment"
  end
  local ctrl, rctrl = buf(2, 1):uint(), buf(3, 1):uint()
  tree:add(f.tagged, buf(2, 1))
  tree:add(f.last, buf(2, 1))
  tree:add(f.dv, buf(2, 1))
  tree:add(f.rv, buf(3, 1))
  tree:add(f.opcode, buf(3, 1))
  local op = rctrl % 16
  if not opcodes[op] then
    tree:add_proto_expert_info(strange)
  end
  local text = opcodes[op] or string.format("opcode %d", op)
  local at
  if ctrl >= 0x80 then
    at = take(tree, buf, 4, { { f.stag, 4 }, { f.to, 8 } })
    if at then
      text = string.format("%s STag %08x TO %s", text, buf(4, 4):uint(), buf(8, 8):uint64():tohex())
    end
  else
    at = take(tree, buf, 4, { { f.inval, 4 }, { f.queue, 4 }, { f.msn, 4 }, { f.mo, 4 } })
    if at then
      text = string.format("%s QN %d MSN %d MO %d", text, buf(8, 4):uint(), buf(12, 4):uint(), buf(16, 4):uint())
    end
  end
  if at and op == 1 then
    at = take(tree, buf, at, { { f.sink_stag, 4 }, { f.sink_to, 8 }, { f.size, 4 }, { f.src_stag, 4 }, { f.src_to, 8 } })
  elseif at and op == 7 then
    text = text .. terminate(buf, at, tree)
    at = nil
  elseif at and (op == 8 or op == 9) then
    at = take(tree, buf, at, { { f.imm, 8 } })
  elseif at and op == 10 then
    at = take(tree, buf, at, { { f.aop, 4 }, { f.aid, 4 }, { f.stag, 4 }, { f.to, 8 }, { f.adata, 8 }, { f.amask, 8 }, { f.acmp, 8 }, { f.acmask, 8 } })
  elseif at and op == 11 then
    at = take(tree, buf, at, { { f.aid, 4 }, { f.aorig, 8 } })
  end
  if at and at < buf:len() then
    tree:add(f.data, buf(at))
    text = text .. string.format(" (%d octets)", buf:len() - at)
  end
  return text
end

-- show is the dissector of one chunk.
local function show(buf, pinfo, tree, what)
  pinfo.cols.protocol = "DDP/SCTP"
  local sub = tree:add(proto, buf())
  if buf:len() < 2 then
    sub:add_proto_expert_info(short)
    return
  end
  sub:add(f.ssn, buf(0, 2))
  local ids = { sid() } -- of the chunks so far; the last one is this
  if #ids > 0 then
    sub:add(f.stream, ids[#ids].value):set_generated()
  end
  local text = what(buf, sub)
  sub:append_text(string.format(", DDP-SSN %d, %s", buf(0, 2):uint(), text))
  pinfo.cols.info:append(" " .. text)
end

function proto.dissector(buf, pinfo, tree)
  show(buf, pinfo, tree, segment)
end

-- Session control has a dissector of its own, which shows under the same name.
local session = Proto("ddp_sctp_session", "DDP over SCTP, session control")
function session.dissector(buf, pinfo, tree)
  show(buf, pinfo, tree, control)
end

local ppid = DissectorTable.get("sctp.ppi")
ppid:add(16, proto)
ppid:add(17, session)
