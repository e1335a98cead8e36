import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** A MongoDB in memory for tests, by people who are not us. Says its URL, and ends when its input does. */
public final class Server {
    /** The oldest that our driver speaks to: by itself the server calls itself older than that. */
    private static final class Oldest implements MongoVersion {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        @Override
        public int getWireVersion() {
            return 9;
        }
    }

    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend().version(new Oldest()));
        System.out.println(server.bindAndGetConnectionString());
        while (System.in.read() >= 0) {}
        server.shutdownNow();
    }
}
