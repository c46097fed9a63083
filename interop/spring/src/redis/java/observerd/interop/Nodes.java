package observerd.interop;

import java.util.concurrent.TimeUnit;

import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/** Nodes whose locks are keys of Redis: redis=HOST:PORT, region=… and keys=spin or keys=pubsub. */
final class Nodes {

	private Nodes() {
	}

	static Node open(Options options, int connections) {
		String[] redis = options.required("redis").split(":");
		LettuceConnectionFactory connection = new LettuceConnectionFactory(redis[0], Integer.parseInt(redis[1]));
		connection.afterPropertiesSet();
		connection.start();
		RedisLockRegistry registry = new RedisLockRegistry(connection, options.required("region"),
				options.duration("ttl").toMillis());
		registry.setRedisLockType(options.required("keys").equals("pubsub") ? RedisLockType.PUB_SUB_LOCK : RedisLockType.SPIN_LOCK);
		return new Node() {

			@Override
			public Door door() {
				return new Door() {

					@Override
					public boolean tryLock(String name, long millis) throws InterruptedException {
						return registry.obtain(name).tryLock(millis, TimeUnit.MILLISECONDS);
					}

					@Override
					public void renew(String name) {
						registry.renewLock(name);
					}

					@Override
					public void unlock(String name) {
						registry.obtain(name).unlock();
					}

				};
			}

			@Override
			public void close() {
				registry.destroy();
				connection.destroy();
			}

			@Override
			public void kill() {
				connection.destroy();
			}

		};
	}

	static void schema(Options options) {
		throw new IllegalArgumentException("Redis has no schema");
	}

	static String version() {
		return RedisLockRegistry.class.getPackage().getImplementationVersion();
	}

}
