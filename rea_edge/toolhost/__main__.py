"""`python -m rea_edge.toolhost`: the host process. Started by the daemon only; standard input is its socket."""

from rea_edge.toolhost.host import main

if __name__ == "__main__":
    main()
