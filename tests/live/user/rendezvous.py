"""A rank of a job: rank 0 listens on MASTER_PORT, greets the other one, and goes on when GATE holds two files (one is its
own). usage: rendezvous.py GATE"""
import os, socket, sys, time

gate, port = sys.argv[1], int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    socket.create_server(("", port)).accept()[0].sendall(b"hello from " + os.uname().nodename.encode())
    print("served port", port, flush=True)
    open(gate + "/" + os.uname().nodename, "w").close()
    while len(os.listdir(gate)) < 2:
        time.sleep(0.1)
else:
    while True:
        try:
            client = socket.create_connection((os.environ["MASTER_ADDR"], port))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    print(client.recv(100).decode(), flush=True)
