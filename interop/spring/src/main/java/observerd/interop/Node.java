package observerd.interop;

/** An application with a lock registry of its own. */
interface Node extends AutoCloseable {

	/** The way to its locks; each node has one, which its threads share. */
	Door door();

	/** Ends as an application that is stopped. */
	@Override
	void close();

	/** Ends as an application that is killed: its locks stay. */
	void kill();

}
