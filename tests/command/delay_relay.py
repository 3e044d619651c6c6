"""delay_relay.py PORT TARGET_PORT MILLISECONDS: hands TCP connections on to 127.0.0.1:TARGET_PORT, every
byte so much later, both ways. Lines on its standard input are new delays; its end ends it. A kernel's
netem does this better, where there is one."""
import asyncio
import sys

delay = float(sys.argv[3]) / 1e3


async def hand_on(reader, writer):
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    async def write():
        while True:
            due, data = await queue.get()
            left = due - loop.time()
            if left > 0:
                await asyncio.sleep(left)
            if not data:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()
    task = asyncio.create_task(write())
    try:
        while True:
            data = await reader.read(1 << 16)
            queue.put_nowait((loop.time() + delay, data))
            if not data:
                break
        await task
    except (ConnectionError, OSError):
        task.cancel()
        writer.close()


async def connected(reader, writer):
    try:
        there = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    except OSError:
        writer.close()
        return
    await asyncio.gather(hand_on(reader, there[1]), hand_on(there[0], writer), return_exceptions=True)
    writer.close()
    there[1].close()


async def main():
    global delay
    server = await asyncio.start_server(connected, "0.0.0.0", int(sys.argv[1]))
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print("ready", flush=True)
    while True:
        line = await lines.readline()
        if not line:
            break
        delay = float(line) / 1e3
        print("ok", flush=True)
    server.close()


asyncio.run(main())
