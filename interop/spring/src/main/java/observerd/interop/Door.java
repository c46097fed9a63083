package observerd.interop;

/** A way to the locks of a node. */
interface Door {

	boolean tryLock(String name, long millis) throws InterruptedException;

	void renew(String name);

	/** Throws a ConcurrentModificationException when the lock was gone. */
	void unlock(String name);

}
